package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// VerifyOptions says how a verification is done.
type VerifyOptions struct {
	Mode     string               // counts, samples or full
	Only     *Slot                // nil: everything
	Repair   bool                 // write what is missing or different, bury what is extra
	Restart  bool                 // compare everything, though one that was killed has come half-way
	Progress func(compared int64) // called now and then; nil: not
	Resumed  func(Resumption)     // called if it goes on from where one before it has come; nil: not
}

// check returns why there is no such verification.
func (o VerifyOptions) check() error {
	switch {
	case o.Mode != "counts" && o.Mode != "samples" && o.Mode != "full":
		return fmt.Errorf("verify: mode %q is not known (use counts, samples or full)", o.Mode)
	case o.Mode == "counts" && o.Only != nil:
		return errors.New("verify: a single slot cannot be counted in the sink (use samples or full)")
	case o.Mode == "counts" && o.Repair:
		return errors.New("verify: counts name no rows to repair (use samples or full)")
	}
	return nil
}

// maxListed is how many keys of each kind a verdict lists.
const maxListed = 1_000

// Verify compares the sink with the source and records the verdict. Writing may
// go on meanwhile: a row that differs is read again on both sides until it has
// settled.
//
// A full verification of everything that ends before its verdict, because ctx
// or the process does, is gone on with by the next one of the same plan and run
// within a day, unless a bad verdict was recorded since it was begun.
// [Verdict.Since] tells when that was, by the state's clock.
//
// The verdict is bad when a row is missing, different, extra or unsettled,
// when rows are in quarantine, and when nothing was compared.
func (m *Migration) Verify(ctx context.Context, o VerifyOptions) (Verdict, error) {
	if err := o.check(); err != nil {
		return Verdict{}, err
	}
	record, err := m.Open(ctx)
	if err != nil {
		return Verdict{}, err
	}
	view, err := m.state.View(ctx)
	if err != nil {
		return Verdict{}, err
	}
	v := &verification{m: m, o: o, record: record, verifier: newToken(), generation: view.Generation, began: view.Now.UTC()}
	if v.aside, err = m.inQuarantine(ctx); err != nil {
		return Verdict{}, err
	}
	if err := v.run(ctx); err != nil {
		return Verdict{}, err
	}
	if view, err = m.state.View(ctx); err != nil {
		return Verdict{}, err
	}
	verdict := v.verdict(view.Now.UTC())
	if o.Only == nil {
		err = m.record(ctx, v.verifier, verdict)
	}
	return verdict, err
}

// record keeps a verdict. A clean one of a lesser mode does not take the place
// of a full one, which says more.
func (m *Migration) record(ctx context.Context, verifier string, v Verdict) error {
	last, ok, err := m.state.Verdict(ctx)
	if err != nil || ok && last.Mode == "full" && last.Clean && v.Clean && v.Mode != "full" {
		return err
	}
	return m.state.SetVerdict(ctx, verifier, v)
}

// inQuarantine returns the keys of all rows in quarantine.
func (m *Migration) inQuarantine(ctx context.Context) (map[string]bool, error) {
	keys := make(map[string]bool)
	const limit = 1000
	for after := ""; ; {
		page, err := m.state.Quarantined(ctx, after, limit)
		if err != nil {
			return nil, err
		}
		for _, q := range page {
			after = q.Key.String()
			keys[after] = true
		}
		if len(page) < limit {
			return keys, nil
		}
	}
}

// A verification is one under way.
type verification struct {
	m          *Migration
	o          VerifyOptions
	record     PlanRecord
	verifier   string          // random, of this one
	generation uint64          // of the run
	began      time.Time       // by the state's clock, for what another one says to be before or after
	aside      map[string]bool // keys in quarantine, which are counted and not compared
	marks      *marker         // of a full one
	notes      notes           // of double-writers
	apart      map[string]bool // keys that have a note, which are compared and not counted: whether the sink had an item

	mu       sync.Mutex
	compared int64
	suspects []suspect
	found    Verdict // what is found out
}

// run does what the mode asks for.
func (v *verification) run(ctx context.Context) error {
	switch v.o.Mode {
	case "full":
		return v.full(ctx)
	case "samples":
		return v.samples(ctx)
	}
	return v.counts(ctx)
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

// list counts a key and adds it, unless it is there. To a list that is long
// already nothing is added.
func (v *verification) list(keys *[]Key, total *int64, s suspect) {
	k := s.name()
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case len(*keys) == maxListed:
		*total++
	case !slices.ContainsFunc(*keys, k.Equal):
		*total++
		*keys = append(*keys, k)
	}
}

// verdict returns the outcome, as of at.
func (v *verification) verdict(at time.Time) Verdict {
	out := v.found
	out.Mode, out.Compared, out.Quarantined, out.Plan = v.o.Mode, v.compared, int64(len(v.aside)), v.record.Hash
	out.Since, out.At = v.began, at
	out.Clean = out.Compared > 0 && out.Quarantined == 0 && out.SourceRows == out.SinkRows &&
		len(out.Missing)+len(out.Different)+len(out.Extra)+len(out.Unsettled) == 0
	return out
}
