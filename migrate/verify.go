package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// How differences are told from rows that are just being written.
var (
	recheckDelays = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
	movingFor     = 10 * time.Minute // how long a row that keeps changing is looked at
)

// VerifyOptions says how a verification is done.
type VerifyOptions struct {
	Mode     string               // counts, samples or full
	Only     *Slot                // nil: everything
	Repair   bool                 // write what is missing or different, bury what is extra
	Progress func(compared int64) // called now and then; nil: not
}

// maxListed is how many keys of each kind a verdict lists.
const maxListed = 1_000

// Verify compares the sink with the source and records the verdict. Writing may
// go on meanwhile: a row that differs is read again on both sides until it has
// settled.
//
// The verdict is bad when a row is missing, different, extra or unsettled,
// when rows are in quarantine, and when nothing was compared.
func (m *Migration) Verify(ctx context.Context, o VerifyOptions) (Verdict, error) {
	record, err := m.Open(ctx)
	if err != nil {
		return Verdict{}, err
	}
	v := &verification{m: m, o: o, record: record}
	if v.aside, err = m.inQuarantine(ctx); err != nil {
		return Verdict{}, err
	}
	switch o.Mode {
	case "full":
		err = v.full(ctx)
	case "samples":
		err = v.samples(ctx)
	case "counts":
		err = v.counts(ctx)
	default:
		return Verdict{}, fmt.Errorf("verify: mode %q is not known (use counts, samples or full)", o.Mode)
	}
	if err != nil {
		return Verdict{}, err
	}
	verdict := v.verdict()
	verdict.Quarantined = int64(len(v.aside))
	verdict.Clean = verdict.Clean && len(v.aside) == 0
	if o.Only == nil {
		err = m.record(ctx, verdict)
	}
	return verdict, err
}

// record keeps a verdict. A clean one of a lesser mode does not take the place
// of a full one, which says more.
func (m *Migration) record(ctx context.Context, v Verdict) error {
	last, ok, err := m.state.Verdict(ctx)
	if err != nil || ok && last.Mode == "full" && last.Clean && v.Clean && v.Mode != "full" {
		return err
	}
	return m.state.SetVerdict(ctx, v)
}

// inQuarantine returns the keys of all rows in quarantine.
func (m *Migration) inQuarantine(ctx context.Context) (map[string]bool, error) {
	keys := make(map[string]bool)
	for after := ""; ; {
		page, err := m.state.Quarantined(ctx, after, 1000)
		if err != nil || len(page) == 0 {
			return keys, err
		}
		for _, q := range page {
			after = q.Key.String()
			keys[after] = true
		}
	}
}

// A verification is one under way.
type verification struct {
	m      *Migration
	o      VerifyOptions
	record PlanRecord
	aside  map[string]bool // keys in quarantine, which are counted and not compared

	mu       sync.Mutex
	compared int64
	suspects []suspect
	found    Verdict // the lists
	counted  [2]int64
}

// A suspect is a row that is not equal on both sides at first sight.
type suspect struct {
	key    Key
	row    *Row   // as the source had it last; nil: it has none
	stored Stored // as the sink had it last
}

// A finding of one comparison.
type likeness int

const (
	equal likeness = iota
	missing
	different
	extra
)

// compare decides what a row, nil if there is none, and an item are to each
// other. Tombstones count as absent.
func (v *verification) compare(row *Row, stored Stored) (likeness, error) {
	there := stored.Found && !stored.Tombstone
	switch {
	case row == nil && there:
		return extra, nil
	case row == nil:
		return equal, nil
	case !there:
		return missing, nil
	}
	expected, err := v.m.sink.Expect(*row)
	if err != nil {
		return different, err
	}
	if expected.Version != stored.Version || expected.Digest != stored.Digest {
		return different, nil
	}
	return equal, nil
}

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

// note adds to what was compared.
func (v *verification) note(compared int64, suspects []suspect) {
	v.mu.Lock()
	v.compared += compared
	v.suspects = append(v.suspects, suspects...)
	n := v.compared
	v.mu.Unlock()
	if v.o.Progress != nil {
		v.o.Progress(n)
	}
}

// extras looks up what the sink holds in the source.
func (v *verification) extras(ctx context.Context) error {
	return v.m.sink.Scan(ctx, "", func(items []Stored, _ string) error {
		var keys []Key
		var live []Stored
		for _, it := range items {
			if !it.Tombstone {
				keys, live = append(keys, it.Key), append(live, it)
			}
		}
		if len(keys) == 0 {
			return nil
		}
		rows, err := v.get(ctx, keys)
		if err != nil {
			return err
		}
		var suspects []suspect
		for _, it := range live {
			if rows[it.Key.String()] == nil {
				suspects = append(suspects, suspect{key: it.Key, stored: it})
			}
		}
		v.note(0, suspects)
		return nil
	})
}

// get returns the rows of keys, mapped, by key.
func (v *verification) get(ctx context.Context, keys []Key) (map[string]*Row, error) {
	var rows []Row
	err := v.m.try(ctx, func() (err error) {
		rows, err = v.m.source.Get(ctx, keys, false)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify: read the source: %w", err)
	}
	byKey := make(map[string]*Row, len(rows))
	for _, r := range rows {
		mapped, err := v.m.mapping(r)
		if err != nil {
			continue
		}
		byKey[r.Key.String()] = &mapped
	}
	return byKey, nil
}

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
		for chunk := range chunks(left, 100) {
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

// moved reports whether either side has changed since before.
func (s suspect) moved(before suspect) bool {
	if (s.row == nil) != (before.row == nil) || s.stored.Found != before.stored.Found || s.stored.Version != before.stored.Version {
		return true
	}
	return s.row != nil && s.row.Version != before.row.Version
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

// list adds a key, unless the list is long already.
func (v *verification) list(keys *[]Key, k Key) {
	if len(*keys) < maxListed {
		*keys = append(*keys, k)
	}
}

// repair brings one item to what the source has.
func (m *Migration) repair(ctx context.Context, l likeness, s suspect) error {
	w := m.sink.Writer()
	if l == extra {
		_, err := w.Bury(ctx, s.stored)
		return err
	}
	results, err := w.Write(ctx, []Row{*s.row})
	if err == nil && results[0].Outcome == Differs {
		_, err = w.Replace(ctx, *s.row)
	}
	return err
}

// verdict returns the outcome.
func (v *verification) verdict() Verdict {
	out := v.found
	out.Mode, out.Compared, out.Plan, out.At = v.o.Mode, v.compared, v.record.Hash, time.Now().UTC()
	out.Clean = out.Compared > 0 && len(out.Missing)+len(out.Different)+len(out.Extra)+len(out.Unsettled) == 0 && v.counted[0] == v.counted[1]
	return out
}

// chunks yields s in pieces of at most n.
func chunks[T any](s []T, n int) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for len(s) > 0 {
			k := min(n, len(s))
			if !yield(s[:k:k]) {
				return
			}
			s = s[k:]
		}
	}
}
