package seqbolt

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

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
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, opening(path, err)
		}
	}
	wait := cmp.Or(o.LockWait, time.Second)
	if err := inspect(path, wait); err != nil {
		return nil, opening(path, err)
	}
	db, file, err := openBolt(path, bolt.Options{Timeout: wait})
	if err != nil {
		return nil, opening(path, err)
	}
	info, err := file.Stat()
	if err := errors.Join(err, upToDate(db)); err != nil {
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

// create makes a new file, whole or not at all: whoever finds it, finds it
// laid out. If another process makes it first, that one stays.
func create(path string) error {
	unfinished, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(unfinished.Name())
	if err := unfinished.Close(); err != nil {
		return err
	}
	db, _, err := openBolt(unfinished.Name(), bolt.Options{Timeout: time.Second})
	if err != nil {
		return err
	}
	if err := errors.Join(db.Update(layOut), db.Close()); err != nil {
		return err
	}
	if err := os.Link(unfinished.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a new name in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// leastSize is the size of a bbolt file's two meta pages.
const leastSize = 2 * 4096

// inspect checks the file without writing to it: bbolt would lay out an empty
// one, and may repair or panic on one that is not its own.
func inspect(path string, wait time.Duration) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errForeign
	case info.Size() == 0:
		return damaged(errors.New("it is empty"))
	case info.Size() < leastSize:
		return errForeign
	}
	// Opened so, bbolt looks at the two meta pages only, and holds the lock.
	db, file, err := openBolt(path, bolt.Options{ReadOnly: true, Timeout: wait})
	if err != nil {
		return err
	}
	err = guarded(func() error {
		info, err := file.Stat()
		if err == nil {
			err = checkPages(file, info.Size(), db.Info().PageSize)
		}
		if err != nil {
			return err
		}
		return db.View(verify)
	})
	return errors.Join(err, db.Close())
}

// openBolt opens a bbolt file and returns the open file, too. If bbolt panics
// it leaves the file open and locked, so we close it.
func openBolt(path string, o bolt.Options) (*bolt.DB, *os.File, error) {
	o.FreelistType = bolt.FreelistMapType
	o.NoStatistics = true
	var file *os.File
	o.OpenFile = func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
		file, err = os.OpenFile(name, flag, mode)
		return file, err
	}
	var db *bolt.DB
	err := guarded(func() (err error) {
		db, err = bolt.Open(path, 0o600, &o)
		return err
	})
	if err != nil {
		file.Close() // nil or closed already is fine
		return nil, nil, err
	}
	return db, file, nil
}

// errForeign: the file is not one of this package's.
var errForeign = errors.New("it is not a Tallystick sequence store")

// opening returns the error of Open for what went wrong.
func opening(path string, err error) error {
	e := &sequence.Error{Code: sequence.CodePrecondition, Message: "cannot open " + path, Err: err}
	known, _ := errors.AsType[*sequence.Error](err)
	switch {
	case known != nil:
		e.Code, e.Err, e.Remedy = known.Code, known.Err, known.Remedy
		e.Message += ": " + known.Message
	case errors.Is(err, berrors.ErrTimeout):
		e.Message, e.Err = path+" is in use by another process", nil
		e.Remedy = "stop that process or choose another data folder"
	case errors.Is(err, errForeign), errors.Is(err, berrors.ErrInvalid):
		e.Err = errForeign
		e.Remedy = "choose another file; this one was left untouched"
	case errors.Is(err, berrors.ErrVersionMismatch):
		e.Err = errors.New("it was written by another version of bbolt")
		e.Remedy = "use the version of tallystick that wrote it"
	case errors.Is(err, berrors.ErrChecksum):
		return opening(path, damaged(err))
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
