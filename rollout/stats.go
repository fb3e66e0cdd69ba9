package rollout

import "sync/atomic"

// Stats counts what a [Store] did since it was made.
type Stats struct {
	Writes       int64 // puts and deletes that were asked for
	NewFailed    int64 // of these, acknowledged ones that new did not take: a note was left
	NotForgotten int64 // notes that were not needed any more and could not be removed
	Superseded   int64 // writes that a later one overtook on the way to new
	Overtaken    int64 // writes repeated because a process in new-only was ahead
	Conflicts    int64 // tries in new-only that met another's

	Reads       int64
	Fallbacks   int64 // reads of old in new-first
	NewUnread   int64 // reads of new that failed, in compare and new-first
	Compared    int64 // reads compared
	Differences int64 // of these, different

	Drained int64 // notes dealt with
	Behind  int   // keys that new is known to be behind with, now
}

type counters struct {
	writes, newFailed, notForgotten, superseded, overtaken, conflicts atomic.Int64
	reads, fallbacks, newUnread, compared, differences, drained       atomic.Int64
}

// Stats returns the counts of now.
func (s *Store[K, V]) Stats() Stats {
	c := &s.counters
	return Stats{
		Writes: c.writes.Load(), NewFailed: c.newFailed.Load(), NotForgotten: c.notForgotten.Load(),
		Superseded: c.superseded.Load(), Overtaken: c.overtaken.Load(), Conflicts: c.conflicts.Load(),
		Reads: c.reads.Load(), Fallbacks: c.fallbacks.Load(), NewUnread: c.newUnread.Load(),
		Compared: c.compared.Load(), Differences: c.differences.Load(),
		Drained: c.drained.Load(), Behind: s.behind.size(),
	}
}
