package rollout

import (
	"context"
	"errors"
)

// Drain brings the new side to what the old one has of every note that was
// there when it began, and removes these notes. It returns how many; notes that
// it could not deal with stay, and do not keep it from the others.
//
// The old row is read after the note, so it is as new as the note or newer. If
// the process dies before the note is removed, the next Drain does the same
// again. Any number of processes may drain at once, beside writers: a note that
// two of them deal with is written twice with one version.
//
// In old-only it does nothing, because nothing may be on its way to new then;
// the notes wait. Do not drain once tombstones were cleaned up in new-only: a note that old then
// has would bring its row back.
func (s *Store[K, V]) Drain(ctx context.Context) (int, error) {
	if s.o.Phase(ctx) == OldOnly {
		return 0, nil
	}
	turn := s.behind.begin()
	done, after := 0, ""
	var failures error
	for {
		notes, err := s.old.Pending(ctx, after, s.o.DrainSize)
		if err != nil {
			return done, errors.Join(failures, failed("drain", "notes", err))
		}
		n, err := s.repairAll(ctx, notes)
		done, failures = done+n, errors.Join(failures, err)
		if len(notes) < s.o.DrainSize || ctx.Err() != nil {
			break
		}
		after = notes[len(notes)-1].ID
	}
	if failures == nil && ctx.Err() == nil {
		s.behind.drained(turn)
	}
	return done, errors.Join(failures, context.Cause(ctx))
}

// repairAll deals with notes, and removes those that it dealt with.
func (s *Store[K, V]) repairAll(ctx context.Context, notes []Note[K]) (int, error) {
	var dealt []Note[K]
	var failures error
	for _, note := range notes {
		held, err := s.repair(ctx, note)
		if err != nil {
			failures = errors.Join(failures, failed("drain", note.Key, err))
			continue
		}
		s.behind.reached(note.Key, held)
		dealt = append(dealt, note)
	}
	if len(dealt) == 0 {
		return 0, failures
	}
	if err := s.old.Forget(ctx, dealt); err != nil {
		return 0, errors.Join(failures, failed("drain", "notes", err))
	}
	s.counters.drained.Add(int64(len(dealt)))
	return len(dealt), failures
}

// repair brings new to what old has of a note's key, and returns the version
// that new has then.
func (s *Store[K, V]) repair(ctx context.Context, note Note[K]) (int64, error) {
	row, found, err := s.old.Get(ctx, note.Key)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	if found {
		held, err := s.new.Put(ctx, note.Key, row)
		return held.Version, err
	}
	version := note.Version
	if version == 0 {
		if version, err = s.nextVersion(ctx, note.Key); version == 0 {
			return 0, err
		}
	}
	held, err := s.new.Bury(ctx, note.Key, version)
	if err == nil && held.found() && held.Version == version {
		// The note is of a put whose row was deleted later, in old-only. The
		// deletion had a version above it.
		held, err = s.new.Bury(ctx, note.Key, version+1)
	}
	return held.Version, err
}

// nextVersion returns the version above the row that new has, and 0 if it has
// none: then nothing keeps a write away that comes later still, which is why
// notes should carry a version.
func (s *Store[K, V]) nextVersion(ctx context.Context, key K) (int64, error) {
	held, err := s.new.Get(ctx, key)
	if err != nil || !held.found() {
		return 0, err
	}
	return held.Version + 1, nil
}
