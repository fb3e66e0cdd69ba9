package rollout

import "context"

// getCompared reads old, and tells what new has else.
func (s *Store[K, V]) getCompared(ctx context.Context, key K) (Row[V], bool, error) {
	row, found, err := s.old.Get(ctx, key)
	if err == nil && s.sampled() {
		s.compare(ctx, key, row, found)
	}
	return row, found, err
}

// compare compares what old has of a key with what new has. A failure of new
// is counted and does not reach the reader.
func (s *Store[K, V]) compare(ctx context.Context, key K, row Row[V], found bool) {
	ctx, cancel := s.aside(ctx)
	defer cancel()
	d, err := s.look(ctx, key, row, found)
	if err != nil {
		s.counters.newUnread.Add(1)
		return
	}
	s.counters.compared.Add(1)
	if d.Kind == Same {
		return
	}
	s.counters.differences.Add(1)
	if s.o.OnDifference != nil {
		s.o.OnDifference(ctx, d)
	}
}

// look compares a row of old with new, again while old changes meanwhile. A key
// that new is behind with is remembered: when new-first comes, its reader has
// seen more than new has.
func (s *Store[K, V]) look(ctx context.Context, key K, row Row[V], found bool) (Difference[K], error) {
	for range tries {
		held, err := s.new.Get(ctx, key)
		if err != nil {
			s.behind.add(key, seen(row, found))
			return Difference[K]{}, err
		}
		d := Difference[K]{Key: key, Old: row.Version, New: held.Version}
		d.Kind = kindOf(row, found, held, s.o.Equal)
		switch d.Kind {
		case Behind:
			s.behind.add(key, row.Version)
		case Extra: // its tombstone will be above it
			s.behind.add(key, held.Version+1)
		}
		again, still, err := s.old.Get(ctx, key)
		if d.Kind == Same || err != nil || still == found && again.Version == row.Version {
			return d, err
		}
		row, found = again, still
	}
	return Difference[K]{Kind: Same}, nil // it moves all the time; the next read will tell
}

// getNewFirst reads new, and old where new has nothing, fails, or is known to
// be behind.
func (s *Store[K, V]) getNewFirst(ctx context.Context, key K) (Row[V], bool, error) {
	least := s.behind.least(key)
	if least == unreachable {
		s.counters.fallbacks.Add(1)
		return s.old.Get(ctx, key)
	}
	held, newErr := s.getAside(ctx, key)
	if newErr == nil && held.Version > 0 && held.Version >= least {
		s.behind.reached(key, held.Version)
		return held.Row, held.found(), nil
	}
	s.counters.fallbacks.Add(1)
	row, found, err := s.old.Get(ctx, key)
	if newErr != nil {
		s.counters.newUnread.Add(1)
	}
	if err == nil && (found || newErr != nil) {
		s.behind.add(key, seen(row, found)) // what is seen now must not be unseen later
	}
	return row, found, err
}

// seen returns the version that new has to reach after a reader saw what old
// has. The version of a deletion nobody knows by then: old is read until a
// drain has passed.
func seen[V any](row Row[V], found bool) int64 {
	if !found {
		return unreachable
	}
	return row.Version
}

// getAside reads new within its time.
func (s *Store[K, V]) getAside(ctx context.Context, key K) (Held[V], error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	return s.new.Get(ctx, key)
}
