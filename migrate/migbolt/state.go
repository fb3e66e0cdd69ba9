package migbolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/tallystick/tallystick/internal/boltfile"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/internal/board"
)

// lockWait is how long a process that has the file may take to end.
const lockWait = time.Second

// A State is a [migrate.State] in a file.
type State struct {
	*board.State
	store *store
}

// Open opens the file at path, and makes it, with mode 0600, if there is none.
// The whole file is read and checked first. It fails with one line if another
// process has the file, or if it is no such file or is damaged, and then has
// left it as it was. Slots are named by axis.
func Open(path string, axis migrate.Axis) (*State, error) { return open(path, axis, false) }

func open(path string, axis migrate.Axis, unsafe bool) (*State, error) {
	db, _, err := files.Open(path, boltfile.Options{LockWait: lockWait, NoSync: unsafe})
	if err != nil {
		return nil, opening(path, err)
	}
	st := &store{db: db, path: path, turn: make(chan struct{}, 1)}
	s := &State{State: board.New(st, axis), store: st}
	if err := s.Evict(context.Background()); err != nil {
		return nil, errors.Join(opening(path, err), db.Close())
	}
	return s, nil
}

// Pod returns the same state as another part of this process sees it.
func (s *State) Pod() *State { return &State{State: s.State.Pod(), store: s.store} }

// opening returns the error of Open in one line.
func opening(path string, err error) error {
	damage, isDamage := errors.AsType[*boltfile.DamageError](err)
	switch {
	case errors.Is(err, boltfile.ErrInUse):
		return fmt.Errorf("%s is in use by another process: stop that one; a state in a file serves one process", path)
	case errors.Is(err, boltfile.ErrForeign):
		return fmt.Errorf("%s is no state of a migration, and was left as it is: choose another state.path", path)
	case errors.Is(err, errFormat):
		return fmt.Errorf("%s has %w: use the version of tallystick that wrote it", path, err)
	case isDamage:
		return fmt.Errorf("%s is damaged, and was left as it is (%w): move it away and start again; what was copied is found and skipped", path, damage.Err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be made: there is no folder %s", path, filepath.Dir(path))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s cannot be opened: give this user the right to read and write it and its folder", path)
	}
	return fmt.Errorf("open %s: %w", path, err)
}
