package migrate

import (
	"context"
	"fmt"
	"sync"
)

// full compares every row of the source, then looks up every item of the sink
// in the source, and reads again what is not equal or was noted by
// double-writers. It goes on from the mark, if there is one.
func (v *verification) full(ctx context.Context) error {
	err := v.begin(ctx)
	if err != nil {
		return err
	}
	if err = v.walk(ctx); err == nil {
		err = v.look(ctx)
	}
	if err != nil {
		v.marks.leave(ctx)
	}
	return err
}

// look reads again what is suspected after the walk.
func (v *verification) look(ctx context.Context) error {
	if err := v.noted(ctx); err != nil {
		return err
	}
	if err := v.recheck(ctx, v.suspects); err != nil {
		return err
	}
	return v.unnamed(ctx)
}

func (v *verification) walk(ctx context.Context) error {
	if !v.marks.now().Paged {
		if err := v.pages(ctx, v.keys()); err != nil {
			return err
		}
		if err := v.marks.paged(ctx); err != nil {
			return err
		}
	}
	if v.o.Only != nil || v.marks.now().Scanned {
		return nil
	}
	if v.marks.now().Position == "" {
		if err := v.notedBefore(ctx); err != nil {
			return err
		}
	}
	if err := v.extras(ctx); err != nil {
		return err
	}
	return v.marks.scanned(ctx)
}

// keys returns what is verified.
func (v *verification) keys() Range {
	if v.o.Only == nil {
		return Range{}
	}
	return v.m.axis.Range(*v.o.Only, v.record.Slots)
}

// A numbered is a page of rows and the how-manieth it is.
type numbered struct {
	n    int
	rows []Row
}

// pages compares all rows of r beyond the mark, several pages at a time.
func (v *verification) pages(ctx context.Context, r Range) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pages := make(chan numbered)
	var workers sync.WaitGroup
	for range v.m.plan.Workers {
		workers.Go(func() {
			for p := range pages {
				if err := v.marked(ctx, p); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := v.read(ctx, r, pages)
	close(pages)
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// read reads pages until the end of r.
func (v *verification) read(ctx context.Context, r Range, pages chan<- numbered) error {
	after := v.marks.now().Last
	for n := 0; ; n++ {
		var page Page
		err := v.m.try(ctx, func() (err error) {
			page, err = v.m.source.Page(ctx, r, after, v.m.plan.PageRows, pageBytes)
			return err
		})
		if err != nil {
			return fmt.Errorf("verify: read a page: %w", err)
		}
		if len(page.Rows) > 0 {
			after = page.Rows[len(page.Rows)-1].Key
			select {
			case pages <- numbered{n, page.Rows}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if page.End {
			return nil
		}
	}
}

// marked compares a page and moves the mark on.
func (v *verification) marked(ctx context.Context, p numbered) error {
	compared, suspects, err := v.page(ctx, p.rows)
	if err != nil {
		return err
	}
	if err := v.marks.compared(ctx, p.n, outcome{last: p.rows[len(p.rows)-1].Key, compared: compared, suspects: suspects}); err != nil {
		return err
	}
	return v.relieve(ctx)
}

// page compares rows with what the sink has of them. Those in quarantine are
// passed over.
func (v *verification) page(ctx context.Context, rows []Row) (compared int64, suspects []suspect, err error) {
	mapped := make([]Row, 0, len(rows))
	for _, r := range rows {
		if !v.aside[r.Key.String()] {
			mapped = append(mapped, v.mapped(r))
		}
	}
	var stored []Stored
	err = v.m.try(ctx, func() (err error) {
		stored, err = v.m.sink.Read(ctx, mapped)
		return err
	})
	if err != nil {
		return 0, nil, fmt.Errorf("verify: read the sink: %w", err)
	}
	for i := range mapped {
		if v.compare(&mapped[i], stored[i]) != equal {
			suspects = append(suspects, suspectOf(mapped[i].Key, &mapped[i], stored[i], false))
		}
	}
	v.note(int64(len(mapped)), suspects)
	return int64(len(mapped)), suspects, nil
}
