package migrate

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// maxNotes bounds the notes that a verification looks at.
const maxNotes = maxSuspects

// notes are what a verification knows of those that double-writers left.
type notes struct {
	before  map[int64]bool // by ID: they were there before the sink was scanned
	unnamed map[int64]bool // by ID: they do not name the item
}

// outbox returns the source's outbox, nil if it has none or what is verified is
// not everything.
func (v *verification) outbox(ctx context.Context) (Outbox, error) {
	box, ok := v.m.source.(Outbox)
	if !ok || v.o.Only != nil {
		return nil, nil
	}
	_, none, err := box.Newest(ctx)
	if err != nil || none {
		return nil, err
	}
	return box, nil
}

// pending returns the notes that are left.
func (v *verification) pending(ctx context.Context) ([]Left, error) {
	box, err := v.outbox(ctx)
	if err != nil || box == nil {
		return nil, err
	}
	left, _, err := box.Pending(ctx, maxNotes)
	if err == nil && len(left) == maxNotes {
		err = fmt.Errorf("the outbox has %d notes or more that double-writers left: deal with them and verify again; a full verification goes on from here", maxNotes)
	}
	return left, err
}

// notedBefore remembers the notes that there are before the sink is scanned. If
// one of them is of a deletion, the scan comes upon the item.
func (v *verification) notedBefore(ctx context.Context) error {
	left, err := v.pending(ctx)
	if err != nil {
		return fmt.Errorf("verify: read the outbox: %w", err)
	}
	v.notes.before = make(map[int64]bool, len(left))
	for _, l := range left {
		v.notes.before[l.ID] = true
	}
	return nil
}

// noted suspects every row with a note of a transaction that began before: its
// double-writer may have died before it wrote the sink, after the row had been
// compared. What a later one changes is of after the verification.
func (v *verification) noted(ctx context.Context) error {
	box, err := v.outbox(ctx)
	if err != nil || box == nil {
		return err
	}
	if err := v.awaitOpen(ctx); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	left, err := v.pending(ctx)
	if err != nil {
		return fmt.Errorf("verify: read the outbox: %w", err)
	}
	v.note(0, v.suspectsOf(left))
	return nil
}

// awaitOpen returns when the transactions have ended that were open when the
// walk was over. Those that last too long are an error: it is not known what
// they will change. The next verification awaits the same ones, not those that
// began since.
func (v *verification) awaitOpen(ctx context.Context) error {
	s, ok := v.m.source.(Settler)
	if !ok {
		return nil
	}
	patience := time.Duration(v.m.plan.State.StallTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("open for %s: end it and verify again, it goes on from here", patience))
	defer cancel()
	token := v.marks.now().Open
	return v.m.try(ctx, func() (err error) {
		if token == "" {
			if token, err = s.Settled(ctx); err != nil {
				return fmt.Errorf("await open transactions: %w", err)
			}
		}
		if err = v.marks.awaits(ctx, token); err != nil {
			return err
		}
		if err = s.Await(ctx, token); err != nil {
			err = fmt.Errorf("await open transactions: %w", err)
		}
		return err
	})
}

// suspectsOf returns the rows of notes, each once, and once more for every item
// that a note names: a row that moved may have left it behind. The row of a note
// that cannot be read is unsettled at once.
func (v *verification) suspectsOf(left []Left) (all []suspect) {
	v.notes.unnamed = map[int64]bool{}
	seen := map[[2]string]bool{}
	add := func(s suspect) {
		id := [2]string{s.key.String(), s.stored.Ref}
		if !v.aside[id[0]] && !seen[id] {
			seen[id] = true
			all = append(all, s)
		}
	}
	for _, l := range left {
		switch {
		case v.m.flaw(l) != "":
			v.unread(l)
			continue
		case l.Ref != "":
			add(suspect{key: l.Key, stored: Stored{Key: l.Key, Ref: l.Ref}, scanned: true})
		case !v.notes.before[l.ID]:
			v.notes.unnamed[l.ID] = true
		}
		add(suspect{key: l.Key, stored: Stored{Key: l.Key}})
	}
	return all
}

// unread lists as unsettled what a note says that cannot be read.
func (v *verification) unread(l Left) {
	if !v.aside[l.Key.String()] {
		v.list(&v.found.Unsettled, &v.found.Totals.Unsettled, suspect{key: l.Key})
	}
}

// unnamed lists as unsettled the rows that are gone and whose notes neither are
// gone nor name the item: nobody can look that up. The next verification scans
// the sink after the deletion; a count has just done so.
func (v *verification) unnamed(ctx context.Context) error {
	if len(v.notes.unnamed) == 0 {
		return nil
	}
	left, err := v.pending(ctx)
	if err != nil {
		return fmt.Errorf("verify: read the outbox: %w", err)
	}
	left = slices.DeleteFunc(left, func(l Left) bool {
		key := l.Key.String()
		return !v.notes.unnamed[l.ID] || v.aside[key] || v.apart != nil && !v.apart[key]
	})
	for chunk := range slices.Chunk(left, recheckRows) {
		keys := make([]Key, len(chunk))
		for i, l := range chunk {
			keys[i] = l.Key
		}
		rows, err := v.get(ctx, keys)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if rows[k.String()] == nil {
				v.list(&v.found.Unsettled, &v.found.Totals.Unsettled, suspect{key: k})
			}
		}
	}
	return nil
}
