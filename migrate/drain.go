package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
func (m *Migration) drain(h *hold) error {
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
	w := m.sink.Writer()
	for {
		left, err := pendingUpTo(h, box, newest)
		if err != nil || len(left) == 0 {
			return err
		}
		if err := m.rewrite(h, w, left); err != nil {
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

// rewrite brings the sink to what the source has of keys.
func (m *Migration) rewrite(h *hold, w Writer, left []Left) error {
	keys := make([]Key, len(left))
	for i, l := range left {
		keys[i] = l.Key
	}
	rows, err := m.source.Get(h, keys, true)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(rows))
	for _, r := range rows {
		there[r.Key.String()] = true
		mapped, err := m.mapping(r)
		if err != nil {
			return fmt.Errorf("row %s: %w", r.Key, err)
		}
		if err := m.put(h, w, mapped); err != nil {
			return fmt.Errorf("row %s: %w", r.Key, err)
		}
		h.advanced()
	}
	for _, l := range left {
		if there[l.Key.String()] {
			continue
		}
		if err := m.buryLeft(h, w, l); err != nil {
			return fmt.Errorf("row %s: %w", l.Key, err)
		}
		h.advanced()
	}
	return nil
}

// put writes one row, over another of the same version too.
func (m *Migration) put(ctx context.Context, w Writer, r Row) error {
	result, err := store(ctx, w, r)
	if err == nil && result.Outcome == Refused {
		err = errors.New(result.Reason)
	}
	return err
}

// buryLeft puts a tombstone in the place of an item whose row was deleted by a
// double-writer that died before it had done so itself. It has the version of
// the deletion, also where the sink has nothing: a put of the row that comes
// late must find it. Of a note without one it has the version after the item's.
func (m *Migration) buryLeft(ctx context.Context, w Writer, l Left) error {
	if l.Ref == "" {
		m.log.Warn("a deletion was left and its note does not name the item: verify in full", "key", l.Key.String())
		return nil
	}
	var r Result
	var err error
	if l.Version != 0 {
		r, err = buryAt(ctx, w, l)
	} else {
		r, err = m.buryNext(ctx, w, l.Ref)
	}
	if err == nil && r.Outcome == Refused {
		err = errors.New(r.Reason)
	}
	return err
}

// buryTries is how often an item that changes while it is looked at is tried to
// be buried.
const buryTries = 10

// buryNext puts a tombstone of the version after the item's in its place.
func (m *Migration) buryNext(ctx context.Context, w Writer, ref string) (Result, error) {
	for range buryTries {
		items, err := m.sink.Refresh(ctx, []Stored{{Ref: ref}})
		if err != nil || !items[0].Found || items[0].Tombstone {
			return Result{Outcome: AlreadyNewer}, err
		}
		if r, err := w.Bury(ctx, items[0]); err != nil || r.Outcome != AlreadyNewer {
			return r, err
		}
	}
	return Result{}, fmt.Errorf("item %s changes all the time: %w", ref, ErrTransient)
}

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
