package migbolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/internal/boltfile"
	"github.com/tallystick/tallystick/migrate/internal/board"
)

// A store is a [board.Store] in a file. As many updates as wait for it are
// committed in one transaction, by the goroutine whose turn it is: a lone
// update is never delayed, and the slower the disk, the more share an fsync.
type store struct {
	db   *bolt.DB
	path string
	turn chan struct{} // holds a token while somebody commits

	mu      sync.Mutex
	pending []*update
	failure error // once set, nothing is written any more
}

// An update is one caller's part of a transaction.
type update struct {
	apply func(board.Tx) error
	err   error
	done  chan struct{}
}

// errRefused: no update of a transaction wrote anything.
var errRefused = errors.New("nothing to commit")

// Update implements [board.Store]. Once ctx let it begin, it is done.
func (s *store) Update(ctx context.Context, f func(board.Tx) error) error {
	u := &update{apply: f, done: make(chan struct{})}
	if err := s.enqueue(ctx, u); err != nil {
		return err
	}
	select {
	case <-u.done:
	case s.turn <- struct{}{}:
		s.commit(s.take())
		<-s.turn
		<-u.done // by this commit, or by the one before
	}
	return u.err
}

func (s *store) enqueue(ctx context.Context, u *update) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.pending = append(s.pending, u)
	}
	return s.failure
}

func (s *store) take() []*update {
	s.mu.Lock()
	defer s.mu.Unlock()
	pending := s.pending
	s.pending = nil
	return pending
}

// commit does updates in one transaction and tells each what came of it. The
// caller has the turn.
func (s *store) commit(updates []*update) {
	if len(updates) == 0 {
		return
	}
	err := s.failed()
	if err == nil {
		err = boltfile.Guarded(func() error { return s.db.Update(func(tx *bolt.Tx) error { return applyAll(tx, updates) }) })
	}
	if err != nil && err != errRefused {
		err = s.fail(fmt.Errorf("a write to %s failed, so nobody knows what the disk holds: %w", s.path, err))
	}
	for _, u := range updates {
		if err != nil && err != errRefused {
			u.err = err
		}
		close(u.done)
	}
}

// applyAll does updates in order, each of which sees those before it. One that
// is refused has written nothing.
func applyAll(tx *bolt.Tx, updates []*update) error {
	meta := tx.Bucket(metaBucket)
	c, err := parseCensus(meta.Get(keyCensus))
	if err != nil {
		return err
	}
	wrote := false
	for _, u := range updates {
		t := &transaction{bucket: tx.Bucket(bucket), census: &c}
		u.err = u.apply(t)
		if t.err != nil || u.err != nil && t.wrote {
			return errors.Join(t.err, u.err)
		}
		wrote = wrote || t.wrote
	}
	if !wrote {
		return errRefused
	}
	return meta.Put(keyCensus, []byte(c.String()))
}

func (s *store) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// fail ends all writing, for the first reason.
func (s *store) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
	}
	return s.failure
}

// View implements [board.Store].
func (s *store) View(ctx context.Context, f func(board.Tx) error) error {
	if err := errors.Join(ctx.Err(), s.failed()); err != nil {
		return err
	}
	return boltfile.Guarded(func() error {
		return s.db.View(func(tx *bolt.Tx) error { return f(&transaction{bucket: tx.Bucket(bucket)}) })
	})
}

// Close implements [board.Store]. It waits for the commit under way.
func (s *store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.fail(fmt.Errorf("%s is closed", s.path))
	s.commit(s.take())
	return s.db.Close()
}

// A transaction is a [board.Tx] in a bucket.
type transaction struct {
	bucket *bolt.Bucket
	census *census // is kept up to date
	wrote  bool
	err    error // the first
}

func (t *transaction) Get(key string) []byte { return t.bucket.Get([]byte(key)) }

func (t *transaction) Put(key string, value []byte) {
	t.replace([]byte(key), value)
	t.note(t.bucket.Put([]byte(key), value))
}

func (t *transaction) Delete(key string) {
	t.replace([]byte(key), nil)
	t.note(t.bucket.Delete([]byte(key)))
}

// replace notes in the census that a key gets a value, or with nil none.
func (t *transaction) replace(key, value []byte) {
	*t.census = t.census.without(key, t.bucket.Get(key)).with(key, value)
}

func (t *transaction) note(err error) {
	t.wrote = true
	if t.err == nil {
		t.err = err
	}
}

func (t *transaction) Each(prefix, from string, visit func(string, []byte) bool) {
	c := t.bucket.Cursor()
	for k, v := c.Seek([]byte(max(prefix, from))); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, v = c.Next() {
		if !visit(string(k), v) {
			return
		}
	}
}
