package migrate_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// finish runs a pod for no longer than limit and reports whether the migration
// is finished.
func (w *world) finish(limit time.Duration) bool {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	w.run(ctx, 1)
	w.pods.Wait()
	return w.report().Status == migrate.Finished
}

// TestATryDoesNotDecideWhatIsCopied: rows that only the old side gets between a
// try and the start are copied.
func TestATryDoesNotDecideWhatIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 10)
		if n, _, err := w.pod().Try(t.Context(), nil, 3); err != nil || n.Written != 3 {
			t.Fatalf("tried %+v, %v", n, err)
		}
		if v, err := w.state.Pod().View(t.Context()); err != nil || v.Plan.Hash != "" {
			t.Errorf("a try left %+v, %v", v.Plan, err)
		}
		time.Sleep(48 * time.Hour)
		for h := 1; h < 48; h++ {
			w.fill(h, 10)
		}
		w.begin()
		if !w.finish(time.Hour) {
			t.Errorf("report %+v", w.report())
		}
		w.same()
	})
}

// TestAWaitingPodDoesNotDecideWhatIsCopied: nor does a pod that is there days
// before the start.
func TestAWaitingPodDoesNotDecideWhatIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 10)
		w.run(t.Context(), 2)
		time.Sleep(48 * time.Hour)
		for h := -3; h < 48; h++ {
			w.fill(h, 10)
		}
		w.begin()
		w.pods.Wait()
		w.same()
	})
}

// TestRowsOfTransactionsOpenAtTheStartAreCopied: one has a key beyond the
// greatest that is visible at the start.
func TestRowsOfTransactionsOpenAtTheStartAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 10)
		end := w.source.Begin()
		time.AfterFunc(30*time.Second, func() { w.fill(1, 1); end() })
		w.begin()
		if !w.finish(time.Hour) {
			t.Errorf("report %+v", w.report())
		}
		w.same()
	})
}

// TestALaterStartKeepsTheSlots: what was added since belongs to the
// double-writer.
func TestALaterStartKeepsTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(p *migrate.Plan) { p.Workers = 1 })
		w.sink.Latency = 100 * time.Millisecond
		for h := range 20 {
			w.fill(h, 200)
		}
		w.begin()
		w.run(t.Context(), 1)
		time.Sleep(8 * time.Second)
		if s, err := w.pod().Stop(t.Context(), true); s != migrate.Stopped {
			t.Errorf("stop: %s, %v", s, err)
		}
		w.fill(30, 10)
		w.begin()
		w.pods.Wait()
		if r := w.report(); r.Status != migrate.Finished || r.Slots.Total != 20 || r.Rows.Written != 4000 {
			t.Errorf("report %+v", r)
		}
	})
}
