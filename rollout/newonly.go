package rollout

import "context"

// In new-only a write takes the version above the one that is there, on
// condition that it still is: of two at once, one is refused and tries again.
// A write without an answer is not repeated, because it may have happened and
// somebody may have built on it.

// putNew writes a row to the new side only.
func (s *Store[K, V]) putNew(ctx context.Context, key K, value V) error {
	return s.change(ctx, key, func(before Held[V]) (Held[V], error) {
		return s.new.Put(ctx, key, Row[V]{value, before.Version + 1})
	})
}

// deleteNew removes a row from the new side only. It leaves a tombstone, which
// keeps the version growing.
func (s *Store[K, V]) deleteNew(ctx context.Context, key K) error {
	return s.change(ctx, key, func(before Held[V]) (Held[V], error) {
		if !before.found() {
			return Held[V]{Written: true}, nil
		}
		return s.new.Bury(ctx, key, before.Version+1)
	})
}

// change reads a row and writes it by write until nobody came in between.
func (s *Store[K, V]) change(ctx context.Context, key K, write func(before Held[V]) (Held[V], error)) error {
	for range tries {
		before, err := s.new.Get(ctx, key)
		if err != nil {
			return err
		}
		held, err := write(before)
		if err != nil || held.Written {
			return err
		}
		s.counters.conflicts.Add(1)
	}
	return ErrConflict
}
