// Package watched keeps what a file says current in memory, for files that an
// operator replaces while the process runs: tokens, certificates.
package watched

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// Interval is how often a file is looked at. A change shows within twice that.
const Interval = time.Second

// A File holds the parsed content of one file. A content that cannot be read
// or parsed leaves the one before in force: a revoked token must not come back
// because somebody's editor left half a file.
type File[T any] struct {
	path  string
	also  []string
	parse func([]byte) (T, error)
	value atomic.Pointer[T]
	seen  []stamp
}

// A stamp tells two states of a file apart.
type stamp struct {
	modified time.Time
	size     int64
	missing  bool
}

// Open reads the file at path. If it does not exist, parse gets nil. A change
// of one of the files in also counts as a change too, for what parse reads by
// itself.
func Open[T any](path string, parse func([]byte) (T, error), also ...string) (*File[T], error) {
	f := &File[T]{path: path, also: also, parse: parse}
	f.seen = f.stat()
	return f, f.read()
}

// Get returns what the file said when it last could be understood.
func (f *File[T]) Get() T { return *f.value.Load() }

// Run looks at the file until ctx ends and calls changed after each change,
// with the error of a content that was not taken over.
func (f *File[T]) Run(ctx context.Context, changed func(error)) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := f.stat(); !slices.Equal(now, f.seen) {
			f.seen = now
			changed(f.read())
		}
	}
}

func (f *File[T]) stat() []stamp {
	stamps := []stamp{stampOf(f.path)}
	for _, path := range f.also {
		stamps = append(stamps, stampOf(path))
	}
	return stamps
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{missing: true}
	}
	return stamp{modified: info.ModTime(), size: info.Size()}
}

func (f *File[T]) read() error {
	b, err := os.ReadFile(f.path)
	switch {
	case os.IsNotExist(err) && f.value.Load() != nil:
		return fmt.Errorf("%s is gone; what it said stays in force until a restart", f.path)
	case os.IsNotExist(err):
		b = nil
	case err != nil:
		return err
	}
	v, err := f.parse(b)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.value.Store(&v)
	return nil
}
