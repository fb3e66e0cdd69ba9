package migrate

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// drainBatch is how many left-over keys are dealt with at once.
const drainBatch = 500

// drain writes the rows that double-writers noted and may not have written, and
// returns when none is left of those whose transactions began before. A row is
// read from the source after its note, so it is as new as the note.
//
// Whatever a transaction from before has noted can be seen once all of those
// have ended, so the greatest ID that can be seen then bounds it. Notes with
// greater IDs are of transactions that began later: their writers are alive, and
// whoever waited for there to be none would wait for the traffic to end.
func (m *Migration) drain(h *hold, term Term) error {
	box, ok := m.source.(Outbox)
	if !ok {
		return nil
	}
	if err := m.settle(h); err != nil {
		return err
	}
	newest, none, err := box.Newest(h)
	if err != nil || none {
		return err
	}
	d := drainage{m, h, m.sink.Writer()}
	for {
		left, err := pendingUpTo(h, box, newest)
		if err != nil || len(left) == 0 {
			return err
		}
		if err := d.rewrite(term, left); err != nil {
			return fmt.Errorf("drain the outbox: %w", err)
		}
		if err := box.Clear(h, left); err != nil {
			return fmt.Errorf("drain the outbox: %w", err)
		}
	}
}

// pendingUpTo returns the oldest notes, those with an ID above newest left out.
func pendingUpTo(ctx context.Context, box Outbox, newest int64) ([]Left, error) {
	left, _, err := box.Pending(ctx, drainBatch)
	return slices.DeleteFunc(left, func(l Left) bool { return l.ID > newest }), err
}

// A drainage is a drain of the outbox under way.
type drainage struct {
	m *Migration
	h *hold
	w Writer
}

// rewrite brings the sink to what the source has of keys. What can never be
// stored, and a note that does not tell its row, goes into quarantine. One row
// is in memory at a time.
func (d drainage) rewrite(term Term, left []Left) error {
	var aside []Quarantined
	for _, l := range left {
		r, err := d.rewriteOne(l)
		if err != nil {
			return fmt.Errorf("row %s: %w", l.Key, err)
		}
		if r.Outcome == Refused {
			d.m.log.Warn("row in quarantine", "key", l.Key.String(), "reason", r.Reason)
			aside = append(aside, Quarantined{Key: l.Key, Reason: r.Reason, Slot: "outbox", At: time.Now().UTC()})
		}
		d.h.advanced()
	}
	if len(aside) == 0 {
		return nil
	}
	return d.m.try(d.h, func() error { return d.m.state.SetAside(d.h, term, aside) })
}

// flaw returns why nobody can tell which row a note is of, "" if it can be told.
func (m *Migration) flaw(l Left) string {
	why := l.Flaw
	if n := len(m.plan.Source.Key); why == "" && len(l.Key) != n {
		why = fmt.Sprintf("it has %d parts, the table's key has %d", len(l.Key), n)
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("the key of note %d in the outbox cannot be read: %s; verify in full, which finds what it was about, then replay strikes it off", l.ID, why)
}

// rewriteOne brings the sink to what the source has of one key.
func (d drainage) rewriteOne(l Left) (Result, error) {
	if why := d.m.flaw(l); why != "" {
		return Result{Outcome: Refused, Reason: why}, nil
	}
	rows, err := d.m.source.Get(d.h, []Key{l.Key}, true)
	switch {
	case err != nil:
		return Result{}, err
	case len(rows) == 0:
		return d.bury(l)
	}
	r, err := d.m.storeRow(d.h, d.w, rows[0])
	if err == nil && r.Outcome != Refused && d.leaves(l, rows[0]) {
		return d.bury(l)
	}
	return r, err
}

// leaves reports whether a row is to be in another item than its note names,
// which is the one that it was in before.
func (d drainage) leaves(l Left, r Row) bool {
	if l.Ref == "" {
		return false
	}
	mapped, err := d.m.mapping(r)
	if err != nil {
		return false
	}
	expected, err := d.m.sink.Expect(mapped)
	return err == nil && expected.Ref != l.Ref
}

// storeRow writes a row of the source, over another of the same version too,
// unless it can never be stored.
func (m *Migration) storeRow(ctx context.Context, w Writer, r Row) (Result, error) {
	mapped, err := m.mapping(r)
	if err == nil {
		_, err = m.sink.Expect(mapped)
	}
	if err != nil {
		return Result{Outcome: Refused, Reason: err.Error()}, nil
	}
	return m.writing(ctx, func() (Result, error) { return store(ctx, w, mapped) })
}

// bury puts a tombstone in the place of an item that a double-writer was to
// remove and died before: its row was deleted, or is in another item now. It has
// the version of the change, also where the sink has nothing: a put of the row
// that comes late must find it. Of a note without one it has the version after
// the item's. An item that is another row's by now stays.
func (d drainage) bury(l Left) (Result, error) {
	if l.Ref == "" {
		d.m.log.Warn("a deletion was left and its note does not name the item: verify in full", "key", l.Key.String())
		return Result{Outcome: AlreadyNewer}, nil
	}
	for range buryTries {
		items, err := d.m.sink.Refresh(d.h, []Stored{{Ref: l.Ref}})
		if err != nil {
			return Result{}, err
		}
		now := items[0]
		live := now.Found && !now.Tombstone
		switch {
		case live && len(now.Key) > 0 && !now.Key.Equal(l.Key):
			return Result{Outcome: AlreadyNewer}, nil
		case l.Version != 0:
			return d.m.writing(d.h, func() (Result, error) { return buryAt(d.h, d.w, l) })
		case !live:
			return Result{Outcome: AlreadyNewer}, nil
		}
		r, err := d.m.writing(d.h, func() (Result, error) { return d.w.Bury(d.h, now) })
		if err != nil || r.Outcome != AlreadyNewer {
			return r, err
		}
	}
	return Result{}, fmt.Errorf("item %s changes all the time: %w", l.Ref, ErrTransient)
}

// buryTries is how often an item that changes while it is looked at is tried to
// be buried.
const buryTries = 10

// buryAt puts a tombstone of a note's version. A row of that very version is
// what the note is about: it was deleted later, without a note, with a version
// above it.
func buryAt(ctx context.Context, w Writer, l Left) (Result, error) {
	r, err := w.BuryAt(ctx, l.Ref, l.Version)
	if err == nil && r.Outcome == Differs {
		r, err = w.BuryAt(ctx, l.Ref, l.Version+1)
	}
	return r, err
}
