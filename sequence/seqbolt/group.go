package seqbolt

import (
	"context"
	"errors"
	"slices"
	"sync"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/tallystick/tallystick/internal/boltfile"
	"github.com/tallystick/tallystick/sequence"
)

// A group commits writes, as many as wait for it in one transaction. There is
// no goroutine and no timer: of the goroutines that wait, the one whose turn
// it is commits for all, while those that come meanwhile queue up for the
// next. So a lone write is never delayed, and the slower the disk, the more
// writes share an fsync.
type group struct {
	db   *bolt.DB
	path string
	turn chan struct{} // holds a token while somebody commits

	mu      sync.Mutex
	pending []*write
	failure error // once set, nothing is read or written any more
}

// A write is one caller's part of a transaction.
type write struct {
	apply func(*bolt.Tx) error
	err   error // what apply returned
	done  chan struct{}
}

// errRefused: apply wrote nothing, because the item is not as it must be. It
// wraps the reason.
type errRefused struct{ error }

func (e errRefused) Unwrap() error { return e.error }

var errNothing = errors.New("nothing to commit")

func newGroup(db *bolt.DB, path string) *group {
	return &group{db: db, path: path, turn: make(chan struct{}, 1)}
}

// write applies a change durably. apply either writes and returns nil or
// writes nothing and returns an errRefused, whose reason write returns. If ctx
// ends before the commit begins, nothing is written (ErrUnavailable); during
// it, the outcome is unknown.
func (g *group) write(ctx context.Context, apply func(*bolt.Tx) error) error {
	w := &write{apply: apply, done: make(chan struct{})}
	if err := g.enqueue(ctx, w); err != nil {
		return err
	}
	select {
	case <-w.done:
	case g.turn <- struct{}{}:
		g.commit(g.take())
		<-g.turn
		<-w.done // w was pending when the turn came, or done by the one before
	case <-ctx.Done():
		if g.withdraw(w) {
			return notDone(ctx)
		}
		return &sequence.Error{Code: sequence.CodeUnknown, Message: "still being written to " + g.path, Err: ctx.Err()}
	}
	return w.err
}

func (g *group) enqueue(ctx context.Context, w *write) error {
	if ctx.Err() != nil {
		return notDone(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure != nil {
		return g.failure
	}
	g.pending = append(g.pending, w)
	return nil
}

func (g *group) withdraw(w *write) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.pending, w)
	if i < 0 {
		return false
	}
	g.pending = slices.Delete(g.pending, i, i+1)
	return true
}

func (g *group) take() []*write {
	g.mu.Lock()
	defer g.mu.Unlock()
	pending := g.pending
	g.pending = nil
	return pending
}

// commit does writes in one transaction and tells each what came of it. The
// caller has the turn.
func (g *group) commit(writes []*write) {
	if len(writes) == 0 {
		return
	}
	err := g.failed()
	if err == nil {
		err = guarded(func() error { return g.db.Update(func(tx *bolt.Tx) error { return applyAll(tx, writes) }) })
		if err != nil && err != errNothing {
			g.fail(broken(g.path, err))
			err = &sequence.Error{Code: sequence.CodeUnknown, Message: "writing to " + g.path + " failed", Err: err}
		}
	}
	for _, w := range writes {
		w.err = g.outcome(w.err, err)
		close(w.done)
	}
}

// outcome returns what a caller gets for a write that applied with one error
// and whose transaction ended with another.
func (g *group) outcome(applied, committed error) error {
	refused, wroteNothing := applied.(errRefused)
	switch {
	case committed != nil && committed != errNothing && !wroteNothing:
		return committed
	case committed != nil && committed != errNothing:
		return g.failed() // it was refused for what others wrote, perhaps in vain
	case wroteNothing:
		return refused.error
	}
	return nil
}

// applyAll does every write in order, so that later ones see the earlier ones.
// It returns an error, which rolls all back, if one went wrong and if there is
// nothing to commit.
func applyAll(tx *bolt.Tx, writes []*write) error {
	wrote := false
	for _, w := range writes {
		w.err = w.apply(tx)
		if _, refused := w.err.(errRefused); w.err != nil && !refused {
			return w.err
		}
		wrote = wrote || w.err == nil
	}
	if !wrote {
		return errNothing
	}
	return nil
}

// read runs a read-only transaction.
func (g *group) read(ctx context.Context, view func(*bolt.Tx) error) error {
	if ctx.Err() != nil {
		return notDone(ctx)
	}
	if err := g.failed(); err != nil {
		return err
	}
	err := guarded(func() error { return g.db.View(view) })
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return g.failed()
	}
	return err
}

// failed returns the error that ended the group's life, if one has.
func (g *group) failed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failure
}

// fail ends the group's life, once.
func (g *group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure == nil {
		g.failure = err
	}
}

// close waits for the commit under way, fails those that wait, and closes the
// file.
func (g *group) close() error {
	g.fail(&sequence.Error{Code: sequence.CodeUnavailable, Message: g.path + " is closed", Err: sequence.ErrClosed})
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	g.commit(g.take())
	return g.db.Close()
}

// guarded turns what bbolt does on a damaged file, panics and faults in its
// memory map, into an error.
func guarded(do func() error) error {
	err := boltfile.Guarded(do)
	if d, ok := errors.AsType[*boltfile.DamageError](err); ok {
		return damaged(d.Err)
	}
	return err
}
