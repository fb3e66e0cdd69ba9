package boltfile

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrForeign: the file is not one of the caller's.
var ErrForeign = errors.New("it is not such a file")

// ErrInUse: another process has the file open.
var ErrInUse = errors.New("it is in use by another process")

// A DamageError says in what way a file is not whole.
type DamageError struct{ Err error }

// Error returns it in one line.
func (e *DamageError) Error() string { return "the file is damaged: " + e.Err.Error() }

// Unwrap returns in what way.
func (e *DamageError) Unwrap() error { return e.Err }

// Damaged returns a [DamageError], or nil if err is.
func Damaged(err error) error {
	if err == nil {
		return nil
	}
	return &DamageError{err}
}

// Guarded runs do and turns a panic of bbolt, and a fault in the memory that
// the file is mapped to, into a [DamageError].
func Guarded(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = Damaged(fmt.Errorf("%v", p))
		}
	}()
	return do()
}
