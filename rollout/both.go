package rollout

import "context"

// A write of both sides takes three steps: old with the note, new, the note
// gone. If the process dies
//
//   - before the first is committed, nothing was written, or old's own rules
//     apply to a commit without an answer;
//   - between the first and the second, or in the second, the note is there and
//     [Store.Drain] does the second and the third;
//   - between the second and the third, Drain does the second again, which
//     finds its own version and changes nothing, and the third.
//
// The copy of the migration may do the second step in between, with the same
// version; or with an older one, which either comes first or is refused.

// tries is how often a write is repeated that others overtake.
const tries = 5

// putBoth writes a row to both sides.
func (s *Store[K, V]) putBoth(ctx context.Context, key K, value V) error {
	terms := Terms{Note: true}
	for range tries {
		note, err := s.old.Put(ctx, key, value, terms)
		if err != nil {
			return err
		}
		ctx, cancel := s.aside(ctx)
		held, err := s.new.Put(ctx, key, Row[V]{value, note.Version})
		overtaken := false
		if err == nil && !held.Written {
			overtaken, err = s.overtaken(ctx, note, value, held)
		}
		s.conclude(ctx, note, held.Version, err)
		cancel()
		if !overtaken {
			return nil
		}
		terms.Above = held.Version
	}
	return ErrConflict
}

// overtaken reports whether new refused a row for the sake of a version that
// old does not know: a process is in new-only already. (Usually somebody wrote
// both sides faster, or Drain or the copy wrote this very change.) The caller
// then writes above that version; if it dies before that, its write was not
// acknowledged and new has the other's.
func (s *Store[K, V]) overtaken(ctx context.Context, note Note[K], value V, held Held[V]) (bool, error) {
	if held.Version == note.Version && held.found() && s.o.Equal(held.Value, value) {
		return false, nil
	}
	row, found, err := s.old.Get(ctx, note.Key)
	if err != nil || !found || row.Version != note.Version {
		s.counters.superseded.Add(1)
		return false, err
	}
	s.counters.overtaken.Add(1)
	return true, nil
}

// deleteBoth removes a row from both sides. New gets a tombstone even where
// old has nothing.
func (s *Store[K, V]) deleteBoth(ctx context.Context, key K) error {
	note, err := s.old.Delete(ctx, key, Terms{Note: true})
	if err != nil {
		return err
	}
	ctx, cancel := s.aside(ctx)
	defer cancel()
	held, err := s.bury(ctx, key, note.Version)
	s.conclude(ctx, note, held, err)
	return nil
}

// bury puts a tombstone of a version into new, or of the next one there where
// a process in new-only has written above it. It returns the version that new
// has then. New is looked at before old, so that the row of somebody who writes
// both sides meanwhile stays: it is either seen in old, or its writer finds the
// tombstone and writes above it.
func (s *Store[K, V]) bury(ctx context.Context, key K, version int64) (int64, error) {
	for range tries {
		held, err := s.new.Bury(ctx, key, version)
		if err != nil || held.Written || held.Deleted {
			return held.Version, err
		}
		if _, found, err := s.old.Get(ctx, key); err != nil || found {
			return held.Version, err
		}
		s.counters.overtaken.Add(1)
		version = held.Version + 1
	}
	return 0, ErrConflict
}

// conclude removes the note of a change that new has, at least, at version
// held. A failure of new leaves the note and is remembered for readers; one of
// the removal leaves it, too, and Drain finds nothing to do.
func (s *Store[K, V]) conclude(ctx context.Context, note Note[K], held int64, err error) {
	if err != nil {
		s.counters.newFailed.Add(1)
		s.behind.add(note.Key, note.Version)
		s.o.Logger.Warn("new side not written; its note stays", "key", note.Key, "error", err)
		return
	}
	s.behind.reached(note.Key, held)
	if err := s.old.Forget(ctx, []Note[K]{note}); err != nil {
		s.counters.notForgotten.Add(1)
		s.o.Logger.Warn("note not removed", "key", note.Key, "error", err)
	}
}
