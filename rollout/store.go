package rollout

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"time"
)

// Options of [New]. All but Phase may be left out.
type Options[K comparable, V any] struct {
	// Phase returns the phase of now. It is asked once in each operation, so
	// it should answer from memory.
	Phase func(ctx context.Context) Phase

	// OnDifference is told, in compare, what the sides do not agree on. It
	// runs in the reader's goroutine. nil: differences are only counted.
	OnDifference func(ctx context.Context, d Difference[K])

	Equal     func(a, b V) bool // nil: reflect.DeepEqual
	Sample    float64           // share of the reads that are compared; 0: all, negative: none
	Timeout   time.Duration     // of one call of the new side, up to new-first; 0: 2 s
	Remember  int               // how many keys are known to be behind, before every key counts as such; 0: 100,000
	DrainSize int               // notes read at once; 0: 100
	Logger    *slog.Logger      // writes that new refused or failed; nil: silent
}

// A Store writes and reads as its phase says. It is safe for concurrent use.
type Store[K comparable, V any] struct {
	old      OldSide[K, V]
	new      NewSide[K, V]
	o        Options[K, V]
	behind   behind[K]
	counters counters
}

// New returns a store over both sides. It does no I/O.
func New[K comparable, V any](old OldSide[K, V], new_ NewSide[K, V], o Options[K, V]) *Store[K, V] {
	if o.Equal == nil {
		o.Equal = func(a, b V) bool { return reflect.DeepEqual(a, b) }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Remember = cmp.Or(o.Remember, 100_000)
	o.DrainSize = cmp.Or(o.DrainSize, 100)
	return &Store[K, V]{old: old, new: new_, o: o, behind: newBehind[K](o.Remember)}
}

// Put writes a row. Up to new-first an error leaves open whether old has it, as
// far as old's own error does; in new-only see [ErrConflict] and
// [ErrUnknownOutcome].
func (s *Store[K, V]) Put(ctx context.Context, key K, value V) error {
	s.counters.writes.Add(1)
	switch s.o.Phase(ctx) {
	case OldOnly:
		_, err := s.old.Put(ctx, key, value, Terms{})
		return failed("put", key, err)
	case NewOnly:
		return failed("put", key, s.putNew(ctx, key, value))
	}
	return failed("put", key, s.putBoth(ctx, key, value))
}

// Delete removes a row; there may be none. Its errors are those of Put.
func (s *Store[K, V]) Delete(ctx context.Context, key K) error {
	s.counters.writes.Add(1)
	switch s.o.Phase(ctx) {
	case OldOnly:
		_, err := s.old.Delete(ctx, key, Terms{})
		return failed("delete", key, err)
	case NewOnly:
		return failed("delete", key, s.deleteNew(ctx, key))
	}
	return failed("delete", key, s.deleteBoth(ctx, key))
}

// Get returns a row, and false if there is none.
func (s *Store[K, V]) Get(ctx context.Context, key K) (V, bool, error) {
	s.counters.reads.Add(1)
	row, found, err := s.get(ctx, key)
	return row.Value, found, failed("get", key, err)
}

func (s *Store[K, V]) get(ctx context.Context, key K) (Row[V], bool, error) {
	switch s.o.Phase(ctx) {
	case Compare:
		return s.getCompared(ctx, key)
	case NewFirst:
		return s.getNewFirst(ctx, key)
	case NewOnly:
		held, err := s.new.Get(ctx, key)
		return held.Row, held.found(), err
	}
	return s.old.Get(ctx, key)
}

// sampled decides whether a read is compared.
func (s *Store[K, V]) sampled() bool {
	return s.o.Sample == 0 || rand.Float64() < s.o.Sample
}

// aside returns the context of a call of the new side that the caller's
// success does not depend on: bounded, and going on when the caller has left.
func (s *Store[K, V]) aside(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
}
