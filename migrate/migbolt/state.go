package migbolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/internal/board"
)

// lockWait is how long a process that has the file may take to end.
const lockWait = time.Second

var bucket = []byte("migration")

// A State is a [migrate.State] in a file.
type State struct {
	*board.State
	store *store
}

// Open opens the file at path, and makes it if there is none. It fails with
// one line if another process has it or it is no such file. Slots are named by
// axis.
func Open(path string, axis migrate.Axis) (*State, error) { return open(path, axis, false) }

func open(path string, axis migrate.Axis, unsafe bool) (*State, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockWait, NoSync: unsafe, NoStatistics: true, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return nil, opening(path, err)
	}
	st := &store{db: db, path: path, turn: make(chan struct{}, 1)}
	s := &State{State: board.New(st, axis), store: st}
	if err = db.Update(layOut); err == nil {
		err = s.Evict(context.Background())
	}
	if err != nil {
		return nil, errors.Join(opening(path, err), db.Close())
	}
	return s, nil
}

// Pod returns the same state as another part of this process sees it.
func (s *State) Pod() *State { return &State{State: s.State.Pod(), store: s.store} }

// layOut makes the bucket, unless the file is something else's.
func layOut(tx *bolt.Tx) error {
	foreign := false
	err := tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
		foreign = foreign || !bytes.Equal(name, bucket)
		return nil
	})
	if err == nil && foreign {
		return berrors.ErrInvalid
	}
	if err == nil {
		_, err = tx.CreateBucketIfNotExists(bucket)
	}
	return err
}

// opening returns the error of Open in one line.
func opening(path string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%s is in use by another process: stop that one; a state in a file serves one process", path)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return fmt.Errorf("%s is no state of a migration, or is damaged: choose another state.path, or remove it and begin again", path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be made: its folder does not exist", path)
	}
	return fmt.Errorf("open %s: %w", path, err)
}
