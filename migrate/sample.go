package migrate

import (
	"context"
	"fmt"
)

// sampleRows is how many rows are compared at each place a sample is taken.
const sampleRows = 5

// samples compares some rows of every slot that has any: at its beginning, in
// its middle and at its end. It finds what is lost in clusters; to find one row
// in a million by chance would take 4.6 million.
func (v *verification) samples(ctx context.Context) error {
	if v.o.Only != nil {
		if err := v.sample(ctx, v.keys()); err != nil {
			return err
		}
		return v.recheck(ctx, v.suspects)
	}
	slots := v.record.Slots
	for i := v.first(slots); slots.Lo <= i && i < slots.Hi; {
		key, ok, err := v.m.source.Nearest(ctx, v.m.rest(i, walk{slots: slots, all: slots}))
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		if !ok {
			break
		}
		if at, ok := v.m.axis.place(key); ok { // otherwise it may lie in any from here on
			i = min(max(at, slots.Lo), slots.Hi-1)
		}
		if err := v.sample(ctx, v.m.axis.Range(Slot{Index: i}, slots)); err != nil {
			return err
		}
		if v.m.plan.Oldest() {
			i++
		} else {
			i--
		}
	}
	return v.recheck(ctx, v.suspects)
}

// first returns the slot that a walk begins with.
func (v *verification) first(slots Span) int64 {
	if v.m.plan.Oldest() {
		return slots.Lo
	}
	return slots.Hi - 1
}

// sample compares rows of one slot: the first ones, and those beyond keys that
// lie half of what is left further on, as far as the index finds such keys.
func (v *verification) sample(ctx context.Context, r Range) error {
	var after Key
	for range 4 {
		page, err := v.m.source.Page(ctx, r, after, sampleRows, pageBytes)
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		if len(page.Rows) > 0 {
			if _, _, err := v.page(ctx, page.Rows); err != nil {
				return err
			}
		}
		if page.End {
			return nil
		}
		at, ok, err := v.m.source.Split(ctx, r, page.Rows[len(page.Rows)-1].Key)
		if err != nil || !ok {
			return err
		}
		after = at
	}
	return nil
}
