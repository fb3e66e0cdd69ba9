package migrate

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// movingFor is how long a row that keeps changing is read again.
const movingFor = 10 * time.Minute

// recheckRows is how many suspects are read again at once.
const recheckRows = 100

// maxSuspects bounds the memory that suspects take: as many are read again
// before the end.
const maxSuspects = 50_000

// relieve reads suspects again if there are too many to be kept until the end.
func (v *verification) relieve(ctx context.Context) error {
	v.mu.Lock()
	var left []suspect
	if len(v.suspects) >= maxSuspects {
		left, v.suspects = v.suspects, nil
	}
	v.mu.Unlock()
	return v.recheck(ctx, left)
}

// recheck reads suspects again on both sides until each is equal once, or has
// not changed over all delays, or keeps changing for too long.
func (v *verification) recheck(ctx context.Context, left []suspect) error {
	delays := v.m.plan.Verify.delays()
	began := time.Now()
	for round := 0; len(left) > 0; round++ {
		last := round >= len(delays)-1
		if err := sleep(ctx, delays[min(round, len(delays)-1)]); err != nil {
			return err
		}
		var again []suspect
		for chunk := range slices.Chunk(left, recheckRows) {
			still, err := v.lookAgain(ctx, chunk, last, time.Since(began) > movingFor)
			if err != nil {
				return err
			}
			again = append(again, still...)
		}
		left = again
	}
	return nil
}

// lookAgain reads suspects again and returns those to look at once more.
func (v *verification) lookAgain(ctx context.Context, chunk []suspect, last, tooLong bool) (still []suspect, err error) {
	keys := make([]Key, len(chunk))
	for i, s := range chunk {
		keys[i] = s.key
	}
	rows, err := v.get(ctx, keys)
	if err != nil {
		return nil, err
	}
	sights, err := v.refresh(ctx, chunk, rows)
	if err != nil {
		return nil, err
	}
	for i, s := range chunk {
		row := sights[i].row
		now := suspectOf(s.key, rows[s.key.String()], sights[i].stored, s.scanned)
		switch l := v.compare(row, now.stored); {
		case l == equal:
		case !last || now.moved(s) && !tooLong:
			still = append(still, now)
		case now.moved(s):
			v.list(&v.found.Unsettled, &v.found.Totals.Unsettled, now)
		default:
			if err := v.conclude(ctx, l, now, row); err != nil {
				return nil, err
			}
		}
	}
	return still, nil
}

// A sight is what both sides have: an item, and the row that is to be in it.
type sight struct {
	row    *Row // nil: none
	stored Stored
}

// refresh reads again from the sink: the items that rows are to be in, and by
// itself each item whose row is gone, or is to be elsewhere.
func (v *verification) refresh(ctx context.Context, chunk []suspect, rows map[string]*Row) ([]sight, error) {
	sights := make([]sight, len(chunk))
	var ofRows, ofItems []int
	var present []Row
	var items []Stored
	for i, s := range chunk {
		row := rows[s.key.String()]
		switch {
		case row != nil && !(s.scanned && v.elsewhere(*row, s.stored)):
			sights[i].row = row
			ofRows, present = append(ofRows, i), append(present, *row)
		case s.stored.Ref != "":
			ofItems, items = append(ofItems, i), append(items, s.stored)
		}
	}
	err := v.fill(ctx, sights, ofRows, func() ([]Stored, error) { return v.m.sink.Read(ctx, present) })
	if err == nil {
		err = v.fill(ctx, sights, ofItems, func() ([]Stored, error) { return v.m.sink.Refresh(ctx, items) })
	}
	for _, i := range ofItems {
		sights[i].stored = ownedBy(chunk[i].key, sights[i].stored)
	}
	return sights, err
}

// ownedBy returns an item that was looked up for the sake of row k, as nothing
// if it is another row's by now: that row is not too many, and no repair may
// bury it.
func ownedBy(k Key, now Stored) Stored {
	if now.Found && len(k) > 0 && len(now.Key) > 0 && !now.Key.Equal(k) {
		return Stored{Ref: now.Ref}
	}
	return now
}

// fill sets what the sink has of the sights at the indexes at.
func (v *verification) fill(ctx context.Context, sights []sight, at []int, read func() ([]Stored, error)) error {
	if len(at) == 0 {
		return nil
	}
	var stored []Stored
	err := v.m.try(ctx, func() (err error) {
		stored, err = read()
		return err
	})
	if err != nil {
		return fmt.Errorf("verify: read the sink: %w", err)
	}
	for n, i := range at {
		sights[i].stored = stored[n]
	}
	return nil
}

// conclude records a difference, or mends it.
func (v *verification) conclude(ctx context.Context, l likeness, s suspect, row *Row) error {
	if v.o.Repair {
		why, err := v.m.repair(ctx, l, row, s.stored)
		if err != nil {
			return fmt.Errorf("repair row %s: %w", s.key, err)
		}
		v.unmended(s, why)
	}
	switch l {
	case missing:
		v.list(&v.found.Missing, &v.found.Totals.Missing, s)
	case extra:
		v.list(&v.found.Extra, &v.found.Totals.Extra, s)
	default:
		v.list(&v.found.Different, &v.found.Totals.Different, s)
	}
	return nil
}

// unmended notes why a row was not mended, "" if it was.
func (v *verification) unmended(s suspect, why string) {
	if why == "" {
		return
	}
	k := s.name()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.found.Totals.Unmended++
	if len(v.found.Unmended) < maxListed {
		v.found.Unmended = append(v.found.Unmended, Unmended{Key: k, Reason: why})
	}
}
