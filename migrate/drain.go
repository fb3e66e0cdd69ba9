package migrate

import (
	"context"
	"errors"
	"fmt"
)

// drainBatch is how many left-over keys are dealt with at once.
const drainBatch = 500

// drain writes the rows that double-writers noted and may not have written,
// and reports whether none is left of those whose transactions began before.
// A row is read from the source after its note, so it is as new as the note.
func (m *Migration) drain(h *hold) (done bool, err error) {
	box, ok := m.source.(Outbox)
	if !ok {
		return true, nil
	}
	if err := m.settle(h); err != nil {
		return false, err
	}
	w := m.sink.Writer()
	for {
		left, none, err := box.Pending(h, drainBatch)
		if err != nil || none || len(left) == 0 {
			return err == nil, err
		}
		if err := m.rewrite(h, w, left); err != nil {
			return false, fmt.Errorf("drain the outbox: %w", err)
		}
		if err := box.Clear(h, left); err != nil {
			return false, fmt.Errorf("drain the outbox: %w", err)
		}
	}
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
	results, err := w.Write(ctx, []Row{r})
	if err != nil {
		return err
	}
	switch results[0].Outcome {
	case Unknown:
		return ErrTransient
	case Refused:
		return errors.New(results[0].Reason)
	case Differs:
		_, err = w.Replace(ctx, r)
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
	if l.Version > 0 {
		return buryAt(ctx, w, l)
	}
	items, err := m.sink.Refresh(ctx, []Stored{{Ref: l.Ref}})
	if err != nil || !items[0].Found || items[0].Tombstone {
		return err
	}
	_, err = w.Bury(ctx, items[0])
	return err
}

// buryAt puts a tombstone of a note's version. A row of that very version is
// what the note is about: it was deleted later, without a note, with a version
// above it.
func buryAt(ctx context.Context, w Writer, l Left) error {
	r, err := w.BuryAt(ctx, l.Ref, l.Version)
	if err == nil && r.Outcome == Differs {
		_, err = w.BuryAt(ctx, l.Ref, l.Version+1)
	}
	return err
}
