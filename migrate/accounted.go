package migrate

import (
	"context"
	"fmt"
	"time"
)

// accounted fails with [ErrStateLost] if fewer rows are in quarantine, or were
// taken out of it, than the slots of one pass set aside: within a pass no row is
// read twice. A state that loses its last seconds, as by a failover, while the
// slot goes on from what its worker remembers, would otherwise finish without
// these rows and tell nobody.
func (m *Migration) accounted(ctx context.Context, v View) error {
	if v.Counts.Quarantined == 0 {
		return nil
	}
	aside := map[Pass]int64{}
	if err := m.eachLine(ctx, func(l LedgerLine) { aside[l.Pass] += l.Counts.Quarantined }); err != nil {
		return err
	}
	t, err := m.state.Tally(ctx)
	if err != nil {
		return err
	}
	if n := max(aside[Copying], aside[Sweeping]); t.Aside+t.Cleared < n {
		return fmt.Errorf("%d rows were put into quarantine and %d are known: %w", n, t.Aside+t.Cleared, ErrStateLost)
	}
	return nil
}

// lastFinish returns when the last slot was finished. Whatever a worker that
// lost its claim sent, it sent before: its slot was finished by another.
func (m *Migration) lastFinish(ctx context.Context) (last time.Time, err error) {
	err = m.eachLine(ctx, func(l LedgerLine) {
		if l.At.After(last) {
			last = l.At
		}
	})
	return last, err
}

// eachLine visits the ledger.
func (m *Migration) eachLine(ctx context.Context, visit func(LedgerLine)) error {
	for from := int64(0); ; {
		lines, err := m.state.Ledger(ctx, from, 1000)
		if err != nil || len(lines) == 0 {
			return err
		}
		for _, l := range lines {
			visit(l)
		}
		from = lines[len(lines)-1].Number + 1
	}
}
