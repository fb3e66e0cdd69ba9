package migrate

import (
	"context"
	"fmt"
)

// counts counts both sides. Equal counts do not show that the rows are equal,
// and what is inserted or deleted meanwhile makes them unequal. Rows in
// quarantine count on neither side, nor do those that double-writers have noted,
// which may be on their way: these are compared one by one.
func (v *verification) counts(ctx context.Context) error {
	left, err := v.pending(ctx)
	if err != nil {
		return fmt.Errorf("verify: read the outbox: %w", err)
	}
	suspects := v.setApart(left)
	if err := v.countSource(ctx); err != nil {
		return fmt.Errorf("verify: count the source: %w", err)
	}
	if err := v.countSink(ctx); err != nil {
		return fmt.Errorf("verify: count the sink: %w", err)
	}
	if err := v.recheck(ctx, suspects); err != nil {
		return err
	}
	return v.unnamed(ctx)
}

// setApart keeps the rows of notes out of the count and returns them.
func (v *verification) setApart(left []Left) []suspect {
	suspects := v.suspectsOf(left)
	v.apart = make(map[string]bool, len(left))
	for _, s := range suspects {
		v.apart[s.key.String()] = false
	}
	v.found.Noted = int64(len(v.apart))
	v.note(v.found.Noted, nil)
	return suspects
}

// counting reports whether a row counts.
func (v *verification) counting(k Key) bool {
	name := k.String()
	_, apart := v.apart[name]
	return !v.aside[name] && !apart
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
		if v.counting(r.Key) {
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
			switch {
			case it.Tombstone:
			case v.counting(it.Key):
				v.found.SinkRows++
			case !v.aside[it.Key.String()]:
				v.apart[it.Key.String()] = true
			}
		}
		return nil
	})
}
