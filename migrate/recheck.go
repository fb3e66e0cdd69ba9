package migrate

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// How differences are told from rows that are just being written.
var (
	recheckDelays = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
	movingFor     = 10 * time.Minute // how long a row that keeps changing is looked at
)

// recheck reads suspects again on both sides until each is equal once, or has
// not changed over all delays, or keeps changing for too long.
func (v *verification) recheck(ctx context.Context) error {
	left := v.suspects
	v.suspects = nil
	began := time.Now()
	for round := 0; len(left) > 0; round++ {
		last := round >= len(recheckDelays)-1
		if err := sleep(ctx, recheckDelays[min(round, len(recheckDelays)-1)]); err != nil {
			return err
		}
		var again []suspect
		for chunk := range slices.Chunk(left, 100) {
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
func (v *verification) lookAgain(ctx context.Context, chunk []suspect, last, tooLong bool) ([]suspect, error) {
	keys := make([]Key, len(chunk))
	for i, s := range chunk {
		keys[i] = s.key
	}
	rows, err := v.get(ctx, keys)
	if err != nil {
		return nil, err
	}
	var still []suspect
	for _, s := range chunk {
		now := suspect{key: s.key, row: rows[s.key.String()]}
		if now.stored, err = v.refresh(ctx, now.row, s); err != nil {
			return nil, err
		}
		l, err := v.compare(now.row, now.stored)
		switch {
		case err == nil && l == equal:
		case !last || now.moved(s) && !tooLong:
			still = append(still, now)
		case now.moved(s):
			v.list(&v.found.Unsettled, s.key)
		default:
			if err := v.conclude(ctx, l, now); err != nil {
				return nil, err
			}
		}
	}
	return still, nil
}

// refresh reads an item again.
func (v *verification) refresh(ctx context.Context, row *Row, s suspect) (Stored, error) {
	var got []Stored
	err := v.m.try(ctx, func() (err error) {
		if row != nil {
			got, err = v.m.sink.Read(ctx, []Row{*row})
		} else if s.stored.Found {
			got, err = v.m.sink.Refresh(ctx, []Stored{s.stored})
		} else {
			got = []Stored{{}}
		}
		return err
	})
	if err != nil {
		return Stored{}, fmt.Errorf("verify: read the sink: %w", err)
	}
	return got[0], nil
}

// conclude records a difference, or mends it.
func (v *verification) conclude(ctx context.Context, l likeness, s suspect) error {
	if v.o.Repair {
		if err := v.m.repair(ctx, l, s); err != nil {
			return fmt.Errorf("repair row %s: %w", s.key, err)
		}
	}
	switch l {
	case missing:
		v.list(&v.found.Missing, s.key)
	case extra:
		v.list(&v.found.Extra, s.key)
	default:
		v.list(&v.found.Different, s.key)
	}
	return nil
}
