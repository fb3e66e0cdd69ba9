package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// full compares every row of the source, and then looks up every item of the
// sink in the source.
func (v *verification) full(ctx context.Context) error {
	r := v.keys()
	if err := v.pages(ctx, r); err != nil {
		return err
	}
	if v.o.Only == nil {
		if err := v.extras(ctx); err != nil {
			return err
		}
	}
	return v.recheck(ctx)
}

// keys returns what is verified.
func (v *verification) keys() Range {
	if v.o.Only == nil {
		return Range{}
	}
	return v.m.axis.Range(*v.o.Only, v.record.Slots)
}

// pages compares all rows of r, several pages at a time.
func (v *verification) pages(ctx context.Context, r Range) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pages := make(chan []Row)
	var workers sync.WaitGroup
	for range v.m.plan.Workers {
		workers.Go(func() {
			for rows := range pages {
				if err := v.page(ctx, rows); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := v.read(ctx, r, pages)
	close(pages)
	workers.Wait()
	return errors.Join(err, context.Cause(ctx))
}

func (v *verification) read(ctx context.Context, r Range, pages chan<- []Row) error {
	var after Key
	for {
		var page Page
		err := v.m.try(ctx, func() (err error) {
			page, err = v.m.source.Page(ctx, r, after, v.m.plan.PageRows, v.m.bytes)
			return err
		})
		if err != nil {
			return fmt.Errorf("verify: read a page: %w", err)
		}
		if len(page.Rows) > 0 {
			after = page.Rows[len(page.Rows)-1].Key
			select {
			case pages <- page.Rows:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if page.End {
			return nil
		}
	}
}

// page compares rows with what the sink has of them.
func (v *verification) page(ctx context.Context, rows []Row) error {
	mapped := make([]Row, 0, len(rows))
	for _, r := range rows {
		if v.aside[r.Key.String()] {
			continue
		}
		if r, err := v.m.mapping(r); err == nil { // else it is in quarantine
			mapped = append(mapped, r)
		}
	}
	var stored []Stored
	err := v.m.try(ctx, func() (err error) {
		stored, err = v.m.sink.Read(ctx, mapped)
		return err
	})
	if err != nil {
		return fmt.Errorf("verify: read the sink: %w", err)
	}
	var suspects []suspect
	for i := range mapped {
		if l, err := v.compare(&mapped[i], stored[i]); err == nil && l != equal {
			suspects = append(suspects, suspect{mapped[i].Key, &mapped[i], stored[i]})
		}
	}
	v.note(int64(len(mapped)), suspects)
	return nil
}
