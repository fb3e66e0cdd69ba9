// Package rollouttest has both sides of a rollout in memory, which fail, die
// and answer late as a test wants, and the suites that every implementation of
// them passes.
package rollouttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tallystick/tallystick/rollout"
)

// A Hook is asked before each call of a side takes effect, and again after it.
// An error is what the caller gets: it is of a call that was not done, or one
// that was. A panic is the death of the caller there.
type Hook func(call string, done bool) error

// ErrLate from a hook of [New] before a write: the write has no answer and
// takes effect at [New.Land].
var ErrLate = errors.New("rollouttest: late")

// An Old is the old side in memory.
type Old[K comparable, V any] struct {
	Hook Hook // nil: nothing happens

	mu      sync.Mutex
	version int64
	rows    map[K]rollout.Row[V]
	notes   map[string]rollout.Note[K]
}

// NewOld returns an empty old side.
func NewOld[K comparable, V any]() *Old[K, V] {
	return &Old[K, V]{rows: map[K]rollout.Row[V]{}, notes: map[string]rollout.Note[K]{}}
}

// do runs f between two calls of hook.
func do(mu *sync.Mutex, hook Hook, call string, f func()) error {
	if hook != nil {
		if err := hook(call, false); err != nil {
			return err
		}
	}
	mu.Lock()
	f()
	mu.Unlock()
	if hook != nil {
		return hook(call, true)
	}
	return nil
}

// change takes a version and notes it.
func (o *Old[K, V]) change(key K, t rollout.Terms) rollout.Note[K] {
	o.version = max(o.version, t.Above) + 1
	n := rollout.Note[K]{Key: key, Version: o.version}
	if t.Note {
		n.ID = fmt.Sprintf("%012d", o.version)
		o.notes[n.ID] = n
	}
	return n
}

// Put implements [rollout.OldSide].
func (o *Old[K, V]) Put(_ context.Context, key K, value V, t rollout.Terms) (n rollout.Note[K], err error) {
	err = do(&o.mu, o.Hook, "old.Put", func() {
		n = o.change(key, t)
		o.rows[key] = rollout.Row[V]{Value: value, Version: n.Version}
	})
	return n, err
}

// Delete implements [rollout.OldSide].
func (o *Old[K, V]) Delete(_ context.Context, key K, t rollout.Terms) (n rollout.Note[K], err error) {
	err = do(&o.mu, o.Hook, "old.Delete", func() {
		n = o.change(key, t)
		delete(o.rows, key)
	})
	return n, err
}

// Get implements [rollout.OldSide].
func (o *Old[K, V]) Get(_ context.Context, key K) (r rollout.Row[V], found bool, err error) {
	err = do(&o.mu, o.Hook, "old.Get", func() { r, found = o.rows[key] })
	return r, found, err
}

// Pending implements [rollout.OldSide].
func (o *Old[K, V]) Pending(_ context.Context, after string, limit int) (notes []rollout.Note[K], err error) {
	err = do(&o.mu, o.Hook, "old.Pending", func() {
		for id, n := range o.notes {
			if id > after {
				notes = append(notes, n)
			}
		}
	})
	slices.SortFunc(notes, func(a, b rollout.Note[K]) int { return cmp.Compare(a.ID, b.ID) })
	return notes[:min(limit, len(notes))], err
}

// Forget implements [rollout.OldSide].
func (o *Old[K, V]) Forget(_ context.Context, notes []rollout.Note[K]) error {
	return do(&o.mu, o.Hook, "old.Forget", func() {
		for _, n := range notes {
			delete(o.notes, n.ID)
		}
	})
}

// Rows returns a copy of all rows.
func (o *Old[K, V]) Rows() map[K]rollout.Row[V] {
	o.mu.Lock()
	defer o.mu.Unlock()
	rows := make(map[K]rollout.Row[V], len(o.rows))
	for k, r := range o.rows {
		rows[k] = r
	}
	return rows
}
