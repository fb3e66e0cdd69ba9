// Package rollout moves an application from an old store to a new one, step by
// step, while it is in use: a writer that writes both and a reader that reads
// the one or the other, as the phase of the day says.
//
//	store := rollout.New(old, new_, rollout.Options[string, Event]{Phase: flag.Phase})
//	err := store.Put(ctx, id, event)
//
// # Phases
//
//	phase        a write goes to                     a read comes from
//	old-only     old                                 old
//	write-both   old with a note, new; note removed  old
//	compare      the same                            old; new is read too, differences are told
//	new-first    the same                            new, and old where new has nothing
//	new-only     new                                 new
//
// Old is the truth up to new-first: a write has succeeded once old has it. The
// new side is guarded by versions, which grow with each change of a row, its
// deletion included. So a write that comes late, comes twice, or is overtaken
// by the migration's copy never replaces anything newer; and a deletion leaves
// a tombstone, so that nothing older brings the row back.
//
// # Going on
//
// A phase reaches processes at different times, so neighbours have to get along:
// go one step, wait until every process is there, and only then the next.
//
//   - to write-both: begin the copy (package migrate) once every process is there.
//   - to compare: when the copy is finished and verified in full.
//   - to new-first: when compare has told no differences for long enough.
//   - to new-only: when [Store.Drain] leaves nothing, [Stats.NewFailed] stands
//     still and a last full verification is clean.
//
// # Going back
//
// One step back is safe anywhere up to new-first, at any time.
//
//   - From new-first and compare nothing else is to be done: old has everything.
//   - From write-both to old-only: what is then written is not in new, and no
//     note tells. Before compare comes again the copy has to run and be verified
//     again; guarded writes make that a matter of time only.
//   - From new-only to new-first reads stay right, because new answers first,
//     and writes overtake what was written in new-only. But old lacks those
//     writes. So the step before that, compare, is lost with the first write in
//     new-only, unless its rows are copied back into old; and tombstones must
//     not be cleaned up while new-first may come again, or rows deleted in
//     new-only come back from old.
//
// # Failure
//
// Old writes the row and a note of it in one transaction. A process that dies
// between any two steps leaves the note; so does a write to new that failed or
// got no answer. [Store.Drain] brings new to what old has of every note. The
// caller is told of none of this: the write has succeeded.
//
// Until then new may be behind. A Store remembers for which keys it saw that
// and reads them from old, so that a client of it never sees less than it has
// seen or was acknowledged, in compare (of the reads that are compared) and
// new-first. (One case is left: it found a row on neither side, because a process
// died while it deleted it, and a write to new that was sent before that lands
// later still.) Other processes may see the row as it was, in new-first, until the
// note is dealt with. So run Drain often, and in every process: its own drain is
// also what lets a Store believe new again where it only knows that something
// was missing. One that finds no note is one query.
package rollout
