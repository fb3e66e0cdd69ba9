package boltfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A Kind is a kind of file.
type Kind struct {
	LayOut func(*bolt.Tx) error // what a new one has
	Verify func(*bolt.Tx) error // whether one that is there is of the kind, and right; it only reads
}

// Options of [Kind.Open].
type Options struct {
	LockWait time.Duration // how long a process that has the file may take to end
	NoSync   bool          // for tests: nothing survives the machine
}

// Open opens the file at path, and makes it, with mode 0600, if there is none. The
// info is of the file that is open, whatever is at path later.
// It fails with [ErrForeign], [ErrInUse], a [DamageError], what Verify returned
// or an error of the file system, and then has left the file as it was.
func (k Kind) Open(path string, o Options) (*bolt.DB, fs.FileInfo, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := k.create(path, o); err != nil {
			return nil, nil, err
		}
	}
	if err := k.inspect(path, o); err != nil {
		return nil, nil, err
	}
	db, file, err := openBolt(path, bolt.Options{Timeout: o.LockWait, NoSync: o.NoSync})
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, info, nil
}

// create makes a new file, whole or not at all: whoever finds it, finds it
// laid out. If another process makes it first, that one stays.
func (k Kind) create(path string, o Options) error {
	unfinished, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(unfinished.Name())
	if err := unfinished.Close(); err != nil {
		return err
	}
	db, _, err := openBolt(unfinished.Name(), bolt.Options{Timeout: time.Second, NoSync: o.NoSync})
	if err != nil {
		return err
	}
	if err := errors.Join(db.Update(k.LayOut), db.Close()); err != nil {
		return err
	}
	if err := os.Link(unfinished.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if o.NoSync {
		return nil
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

// inspect checks the file without writing to it.
func (k Kind) inspect(path string, o Options) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return ErrForeign
	case info.Size() == 0:
		return Damaged(errors.New("it is empty"))
	case info.Size() < leastSize:
		return ErrForeign
	}
	// Opened so, bbolt looks at the two meta pages only, and holds the lock.
	db, file, err := openBolt(path, bolt.Options{ReadOnly: true, Timeout: o.LockWait})
	if err != nil {
		return err
	}
	err = Guarded(func() error {
		info, err := file.Stat()
		if err == nil {
			err = checkPages(file, info.Size(), db.Info().PageSize)
		}
		if err != nil {
			return err
		}
		return db.View(k.Verify)
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
	err := Guarded(func() (err error) {
		db, err = bolt.Open(path, 0o600, &o)
		return err
	})
	if err != nil {
		file.Close() // nil or closed already is fine
		return nil, nil, meaning(err)
	}
	return db, file, nil
}

// meaning returns what an error of bbolt's Open means.
func meaning(err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return ErrInUse
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch):
		return ErrForeign
	case errors.Is(err, berrors.ErrChecksum):
		return Damaged(err)
	}
	return err
}
