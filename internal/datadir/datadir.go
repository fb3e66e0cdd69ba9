// Package datadir holds a folder for one process: a second one that wants the
// same folder gets one clear line instead of damaged files.
package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gofrs/flock"
)

// A Dir is a folder that this process holds until it calls Close or ends,
// however it ends.
type Dir struct {
	lock *flock.Flock
}

// ErrInUse is what Open wraps when another process holds the folder.
var ErrInUse = errors.New("in use by another process")

// Open makes the folder at path if there is none, readable by its owner only,
// and takes it for this process.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("data folder %s: there is a file in its place: choose another folder with --data", path)
	} else if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", path, err)
	}
	d := &Dir{lock: flock.New(filepath.Join(path, "lock"), flock.SetPermissions(0o600))}
	held, err := d.lock.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("data folder %s: %w", path, err)
	case !held:
		return nil, fmt.Errorf("data folder %s: %w%s", path, ErrInUse, d.holder())
	}
	// Who holds it is a hint for people; the lock does not depend on it.
	_ = os.WriteFile(d.lock.Path(), fmt.Appendln(nil, os.Getpid()), 0o600)
	return d, nil
}

// holder returns " (process N)" if the holder has left its number.
func (d *Dir) holder() string {
	b, err := os.ReadFile(d.lock.Path())
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}

// Close lets go of the folder.
func (d *Dir) Close() error { return d.lock.Close() }
