package migrate

import (
	"context"
	"fmt"
)

// counts counts both sides. Equal counts do not show that the rows are equal,
// and what is inserted or deleted meanwhile makes them unequal. Rows in
// quarantine count on neither side.
func (v *verification) counts(ctx context.Context) error {
	if err := v.countSource(ctx); err != nil {
		return fmt.Errorf("verify: count the source: %w", err)
	}
	if err := v.countSink(ctx); err != nil {
		return fmt.Errorf("verify: count the sink: %w", err)
	}
	return nil
}

func (v *verification) countSource(ctx context.Context) error {
	var after Key
	for end := false; !end; {
		var page Page
		err := v.m.try(ctx, func() (err error) {
			page, err = v.m.source.Page(ctx, Range{}, after, v.m.plan.PageRows, pageBytes)
			return err
		})
		if err != nil {
			return err
		}
		if end = page.End; len(page.Rows) > 0 {
			after = page.Rows[len(page.Rows)-1].Key
			n := v.countedOf(page.Rows)
			v.found.SourceRows += n
			v.note(n, nil)
		}
	}
	return nil
}

func (v *verification) countedOf(rows []Row) (n int64) {
	for _, r := range rows {
		if !v.aside[r.Key.String()] {
			n++
		}
	}
	return n
}

func (v *verification) countSink(ctx context.Context) error {
	return v.m.sink.Scan(ctx, "", func(items []Stored, _ string) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, it := range items {
			if !it.Tombstone && !v.aside[it.Key.String()] {
				v.found.SinkRows++
			}
		}
		return nil
	})
}
