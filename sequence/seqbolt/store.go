package seqbolt

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/sequence"
)

var _ sequence.Store = (*Store)(nil)

// A Store is a [sequence.Store] in one file. It lists names in byte order. It
// is safe for concurrent use by one process; see the package comment for what
// it promises and how it fails.
type Store struct {
	group *group
	file  os.FileInfo // of the file that is open
}

// Close waits for the write under way and closes the file. Every call after it
// fails with [sequence.ErrUnavailable].
func (s *Store) Close() error {
	if err := s.group.close(); err != nil {
		return fmt.Errorf("seqbolt: close: %w", err)
	}
	return nil
}

// Create implements [sequence.Store]. All records are written in one
// transaction.
func (s *Store) Create(ctx context.Context, records []sequence.Record) []error {
	var errs []error
	failure := s.group.write(ctx, func(tx *bolt.Tx) error {
		var err error
		errs, err = createAll(tx, records)
		return err
	})
	if failure != nil && failure != errNoneNew { // errs may be written yet
		errs = slices.Repeat([]error{failure}, len(records))
	}
	for i, r := range records {
		errs[i] = wrap("create", r.Definition.Name, errs[i])
	}
	return errs
}

// errNoneNew: no record of a batch was to be written.
var errNoneNew = errors.New("none is new")

func createAll(tx *bolt.Tx, records []sequence.Record) (errs []error, err error) {
	items := tx.Bucket(seqBucket)
	errs = make([]error, len(records))
	err = errRefused{errNoneNew}
	for i, r := range records {
		name := []byte(r.Definition.Name)
		if errs[i] = sequence.CheckName(r.Definition.Name); errs[i] != nil {
			continue
		}
		if items.Get(name) != nil {
			errs[i] = sequence.ErrExists
			continue
		}
		if err = put(tx, r); err != nil {
			return errs, err
		}
	}
	return errs, err
}

// Load implements [sequence.Store].
func (s *Store) Load(ctx context.Context, name string) (r sequence.Record, err error) {
	err = s.group.read(ctx, func(tx *bolt.Tx) (err error) {
		r, err = find(tx.Bucket(seqBucket), name)
		return err
	})
	return r, wrap("load", name, err)
}

// Advance implements [sequence.Store].
func (s *Store) Advance(ctx context.Context, a sequence.Advance) (sequence.Record, error) {
	r, err := s.change(ctx, a.Name, func(now sequence.Record) (sequence.Record, bool) { return a.To(now), a.Applies(now) })
	return r, wrap("advance", a.Name, err)
}

// Swap implements [sequence.Store].
func (s *Store) Swap(ctx context.Context, nonce string, next sequence.Record) (sequence.Record, error) {
	name := next.Definition.Name
	r, err := s.change(ctx, name, func(now sequence.Record) (sequence.Record, bool) { return next, now.Nonce == nonce })
	return r, wrap("swap", name, err)
}

// change replaces a record by the one that to returns, unless to refuses. It
// returns the new record, or the one as it is with ErrConflict.
func (s *Store) change(ctx context.Context, name string, to func(now sequence.Record) (sequence.Record, bool)) (sequence.Record, error) {
	var result sequence.Record // never read while a transaction may still write it
	err := s.group.write(ctx, func(tx *bolt.Tx) error {
		now, err := find(tx.Bucket(seqBucket), name)
		if err != nil {
			return errRefused{err}
		}
		next, ok := to(now)
		if !ok {
			result = now
			return errRefused{sequence.ErrConflict}
		}
		result = next
		return put(tx, next)
	})
	if err != nil && !errors.Is(err, sequence.ErrConflict) {
		return sequence.Record{}, err
	}
	return result, err
}

// List implements [sequence.Store].
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (records []sequence.Record, last string, more bool, err error) {
	last = after
	err = s.group.read(ctx, func(tx *bolt.Tx) error {
		c := tx.Bucket(seqBucket).Cursor()
		for name, line := c.Seek([]byte(max(prefix, after))); bytes.HasPrefix(name, []byte(prefix)) && name != nil; name, line = c.Next() {
			if string(name) == after {
				continue
			}
			if more = len(records) == limit; more {
				return nil
			}
			r, err := decode(string(name), line)
			if err != nil {
				return err
			}
			records, last = append(records, r), r.Definition.Name
		}
		return nil
	})
	return records, last, more, wrap("list", prefix, err)
}

// Generation implements [sequence.Store]. It fails with
// [sequence.ErrPrecondition] when the file was removed or replaced while it was
// open: what is written here would be lost.
func (s *Store) Generation(ctx context.Context) (g uint64, err error) {
	if now, err := os.Stat(s.group.path); err != nil || !os.SameFile(now, s.file) {
		return 0, wrap("generation", "", &sequence.Error{Code: sequence.CodePrecondition, Err: err,
			Message: s.group.path + " was removed or replaced while it was open",
			Remedy:  "stop the server, put the right file back, then run `tallystick seq adopt --skip N`"})
	}
	err = s.group.read(ctx, func(tx *bolt.Tx) (err error) {
		g, err = generation(tx.Bucket(metaBucket))
		return err
	})
	return g, wrap("generation", "", err)
}

// Bump implements [sequence.Store].
func (s *Store) Bump(ctx context.Context) error {
	err := s.group.write(ctx, func(tx *bolt.Tx) error { return bump(tx.Bucket(metaBucket)) })
	return wrap("bump", "", err)
}

// Adopt gives the file a new identity and raises the generation: the last step
// of `tallystick seq adopt`, after every counter was moved.
func (s *Store) Adopt(ctx context.Context) error {
	err := s.group.write(ctx, func(tx *bolt.Tx) error {
		meta := tx.Bucket(metaBucket)
		if err := bump(meta); err != nil {
			return err
		}
		return meta.Put(keyIdentity, []byte(rand.Text()))
	})
	return wrap("adopt", "", err)
}

func find(items *bolt.Bucket, name string) (sequence.Record, error) {
	line := items.Get([]byte(name))
	if line == nil {
		return sequence.Record{}, sequence.ErrNotFound
	}
	return decode(name, line)
}

// put writes a record and keeps the census.
func put(tx *bolt.Tx, r sequence.Record) error {
	line, err := encode(r)
	if err != nil {
		return err
	}
	items, meta, name := tx.Bucket(seqBucket), tx.Bucket(metaBucket), []byte(r.Definition.Name)
	c, err := readCensus(meta)
	if err != nil {
		return err
	}
	c = c.minus(census{}.count(name, items.Get(name))).count(name, line)
	return errors.Join(meta.Put(keyCensus, []byte(c.String())), items.Put(name, line))
}

// notDone is the error of a call whose context ended before anything was done.
func notDone(ctx context.Context) error {
	return &sequence.Error{Code: sequence.CodeUnavailable, Message: "not done", Err: ctx.Err()}
}

func wrap(op, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case name == "":
		return fmt.Errorf("seqbolt: %s: %w", op, err)
	}
	return fmt.Errorf("seqbolt: %s %q: %w", op, name, err)
}
