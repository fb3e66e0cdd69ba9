package seqbolt

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/internal/boltfile"
	"github.com/tallystick/tallystick/sequence"
)

// Options of [Open]. The zero value is good.
type Options struct {
	LockWait time.Duration // how long to wait for a process that has the file open; 0: 1 s
}

// Open opens the file at path and makes it, with mode 0600, if there is none.
// Its folder must exist. The whole file is read and checked first; one that
// this package did not write, cannot read or must not trust is left untouched
// and refused with an error that says why and what to do.
func Open(path string, o Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("seqbolt: open: %w", err)
	}
	db, info, err := boltfile.Kind{LayOut: layOut, Verify: verify}.Open(path, boltfile.Options{LockWait: cmp.Or(o.LockWait, time.Second)})
	if err != nil {
		return nil, opening(path, err)
	}
	if err := upToDate(db); err != nil {
		return nil, opening(path, errors.Join(err, db.Close()))
	}
	return &Store{group: newGroup(db, path), file: info}, nil
}

// upToDate gives a file of oldFormat what it lacks.
func upToDate(db *bolt.DB) error {
	return guarded(func() error {
		f := ""
		db.View(func(tx *bolt.Tx) error {
			f = string(tx.Bucket(metaBucket).Get(keyFormat))
			return nil
		})
		if f == format {
			return nil
		}
		return db.Update(update)
	})
}

// opening returns the error of Open for what went wrong.
func opening(path string, err error) error {
	e := &sequence.Error{Code: sequence.CodePrecondition, Message: "cannot open " + path, Err: err}
	if d, ok := errors.AsType[*boltfile.DamageError](err); ok {
		err = damaged(d.Err)
	}
	known, _ := errors.AsType[*sequence.Error](err)
	switch {
	case known != nil:
		e.Code, e.Err, e.Remedy = known.Code, known.Err, known.Remedy
		e.Message += ": " + known.Message
	case errors.Is(err, boltfile.ErrInUse):
		e.Message, e.Err = path+" is in use by another process", nil
		e.Remedy = "stop that process or choose another data folder"
	case errors.Is(err, boltfile.ErrForeign):
		e.Err = errors.New("it is not a Tallystick sequence store")
		e.Remedy = "choose another file; this one was left untouched"
	case errors.Is(err, fs.ErrNotExist):
		e.Message, e.Err = fmt.Sprintf("cannot make %s: the folder %s does not exist", path, filepath.Dir(path)), nil
		e.Remedy = "make the folder"
	case errors.Is(err, fs.ErrPermission):
		e.Remedy = "give this user the right to read and write the file and its folder"
	}
	return e
}

// damaged returns the error for a file that cannot be trusted.
func damaged(err error) *sequence.Error {
	return &sequence.Error{Code: sequence.CodeInternal, Message: "the file is damaged", Err: err,
		Remedy: "restore it from a backup, then run `tallystick seq adopt --skip N`"}
}

func otherFormat(f string) *sequence.Error {
	return &sequence.Error{Code: sequence.CodePrecondition, Message: fmt.Sprintf("the file has format %q, this version reads %q", f, format),
		Remedy: "use the version of tallystick that wrote it"}
}

// broken returns the error for everything after a write that failed.
func broken(path string, err error) *sequence.Error {
	return &sequence.Error{Code: sequence.CodeUnavailable, Message: "a write to " + path + " failed, so nobody knows what the disk holds", Err: err,
		Remedy: "check the disk, then restart the server"}
}
