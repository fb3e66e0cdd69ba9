package rollouttest

import (
	"context"
	"errors"
	"sync"

	"github.com/tallystick/tallystick/rollout"
)

// A New is the new side in memory.
type New[K comparable, V any] struct {
	Hook Hook // nil: nothing happens

	mu   sync.Mutex
	held map[K]rollout.Held[V]
	late []func()
}

// NewNew returns an empty new side.
func NewNew[K comparable, V any]() *New[K, V] { return &New[K, V]{held: map[K]rollout.Held[V]{}} }

// Put implements [rollout.NewSide].
func (n *New[K, V]) Put(_ context.Context, key K, row rollout.Row[V]) (rollout.Held[V], error) {
	return n.write("new.Put", key, rollout.Held[V]{Row: row})
}

// Bury implements [rollout.NewSide].
func (n *New[K, V]) Bury(_ context.Context, key K, version int64) (rollout.Held[V], error) {
	return n.write("new.Bury", key, rollout.Held[V]{Row: rollout.Row[V]{Version: version}, Deleted: true})
}

func (n *New[K, V]) write(call string, key K, want rollout.Held[V]) (h rollout.Held[V], err error) {
	write := func() { h = n.guarded(key, want) }
	err = do(&n.mu, n.Hook, call, write)
	if errors.Is(err, ErrLate) {
		n.mu.Lock()
		n.late = append(n.late, write)
		n.mu.Unlock()
		err = rollout.ErrUnknownOutcome
	}
	if err != nil {
		return rollout.Held[V]{}, err
	}
	return h, nil
}

// guarded writes what is newer than what is there.
func (n *New[K, V]) guarded(key K, want rollout.Held[V]) rollout.Held[V] {
	if now := n.held[key]; now.Version >= want.Version {
		return now
	}
	n.held[key] = want
	want.Written = true
	return want
}

// Get implements [rollout.NewSide].
func (n *New[K, V]) Get(_ context.Context, key K) (h rollout.Held[V], err error) {
	err = do(&n.mu, n.Hook, "new.Get", func() { h = n.held[key] })
	return h, err
}

// Land lets the i-th write that is late take effect, modulo their number. It
// returns false if none is.
func (n *New[K, V]) Land(i int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.late) == 0 {
		return false
	}
	i %= len(n.late)
	n.late[i]()
	n.late = append(n.late[:i], n.late[i+1:]...)
	return true
}

// Held returns a copy of everything, tombstones included.
func (n *New[K, V]) Held() map[K]rollout.Held[V] {
	n.mu.Lock()
	defer n.mu.Unlock()
	held := make(map[K]rollout.Held[V], len(n.held))
	for k, h := range n.held {
		held[k] = h
	}
	return held
}
