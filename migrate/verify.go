package migrate

import (
	"context"
	"fmt"
	"sync"
	"time"
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
	return m.state.SetVerdict(ctx, "", v)
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

// list adds a key, unless the list is long already.
func (v *verification) list(keys *[]Key, k Key) {
	if len(*keys) < maxListed {
		*keys = append(*keys, k)
	}
}

// verdict returns the outcome.
func (v *verification) verdict() Verdict {
	out := v.found
	out.Mode, out.Compared, out.Plan, out.At = v.o.Mode, v.compared, v.record.Hash, time.Now().UTC()
	out.Clean = out.Compared > 0 && len(out.Missing)+len(out.Different)+len(out.Extra)+len(out.Unsettled) == 0 && v.counted[0] == v.counted[1]
	return out
}
