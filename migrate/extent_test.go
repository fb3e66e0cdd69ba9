package migrate_test

import (
	"context"
	"math"
	"strconv"
	"strings"
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
		if r := w.report(); r.Status != migrate.Finished || r.Slots.Total != 20 || r.Rows.Written+r.Rows.AlreadyOurs != 4000 {
			t.Errorf("report %+v", r)
		}
	})
}

// TestAllRowsUpToTheEndOfTheSlotOfToAreCopied: to lies a minute before it.
func TestAllRowsUpToTheEndOfTheSlotOfToAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := start.Add(3*time.Hour + 59*time.Minute)
		w := newWorld(t, func(p *migrate.Plan) { p.Slots.To = &to })
		for h := range 5 {
			w.fill(h, 10)
		}
		w.begin()
		if !w.finish(time.Hour) || w.sink.Len() != 40 {
			t.Errorf("%d of 40 rows, report %+v", w.sink.Len(), w.report())
		}
	})
}

// TestAFromLeavesNoRowOut, wherever it lies: what is before it is copied with
// the lowest slot, and the outlook says so.
func TestAFromLeavesNoRowOut(t *testing.T) {
	for name, from := range map[string]time.Time{"within": start.Add(3 * time.Hour), "beyond all keys": start.Add(100 * time.Hour), "of the future": start.Add(9999 * time.Hour)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(p *migrate.Plan) { p.Slots.From = &from })
				for h := range 5 {
					w.fill(h, 10)
				}
				findings, err := w.pod().Preflight(t.Context())
				if err != nil || len(findings) == 0 || !strings.Contains(findings[len(findings)-1].Message, "copied with the lowest slot") {
					t.Errorf("findings %+v, %v", findings, err)
				}
				w.begin()
				if !w.finish(time.Hour) {
					t.Errorf("report %+v", w.report())
				}
				w.same()
				if v := w.verify(migrate.VerifyOptions{Mode: "full"}); !v.Clean || v.Compared != 50 {
					t.Errorf("verdict %+v", v)
				}
			})
		})
	}
}

// TestTheOutlookSaysUntilWhenTheNewestSlotIsWaitedFor, and warns where that is
// long.
func TestTheOutlookSaysUntilWhenTheNewestSlotIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*migrate.Plan)
		want string
	}{
		"an hour":      {func(*migrate.Plan) {}, "note: slots: the newest slot is copied when it has ended and lag has passed, at 2000-01-01T01:01:00Z: it is not finished before"},
		"a wide slot":  {func(p *migrate.Plan) { p.Slots.Width.Time = 999_999 * time.Hour }, "warning: slots: the newest slot is copied when it has ended and lag has passed, at 2084-"},
		"a long lag":   {func(p *migrate.Plan) { p.Slots.Lag = migrate.Duration(2_000_000 * time.Hour) }, "warning: slots: the newest slot is copied when it has ended and lag has passed, at 2228-"},
		"a to far off": {func(p *migrate.Plan) { to := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC); p.Slots.To = &to }, "warning: slots: the newest slot is copied when it has ended and lag has passed, at 9999-12-31T00:01:00Z"},
		"nothing": {func(p *migrate.Plan) {
			to := start
			p.Slots.To = &to
			from := start.Add(-time.Hour)
			p.Slots.From = &from
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, c.edit)
				w.source.Put(row(newWorld(t).key(31*24), 1, "of now"))
				findings, err := w.pod().Preflight(t.Context())
				got := ""
				for _, f := range findings {
					if f.Field == "slots" {
						got = string(f.Severity) + ": " + f.Error()
					}
				}
				if err != nil || !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
					t.Errorf("%s, %v; want %s", got, err, c.want)
				}
			})
		})
	}
}

// TestKeysOfTheFutureAreNotWaitedFor: one comes from a device whose clock is
// three years ahead; the outlook names it, a full verification finds it.
func TestKeysOfTheFutureAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 50)
		w.fill(24*365*3, 1)
		future := w.source.All()[50].Key
		findings, err := w.pod().Preflight(t.Context())
		if err != nil || len(findings) == 0 || !strings.Contains(findings[len(findings)-1].Message, future[0]) {
			t.Errorf("findings %+v, %v", findings, err)
		}
		w.begin()
		if !w.finish(48*time.Hour) || w.sink.Len() != 50 {
			t.Errorf("%d of 50 rows, report %+v", w.sink.Len(), w.report())
		}
		if v := w.verify(migrate.VerifyOptions{Mode: "full"}); len(v.Missing) != 1 || !v.Missing[0].Equal(future) {
			t.Errorf("verdict %+v", v)
		}
	})
}

func TestTheGreatestIntegersAreCopied(t *testing.T) {
	for _, order := range []string{"newest-first", "oldest-first"} {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(p *migrate.Plan) {
					p.Slots.By, p.Slots.Width, p.Slots.Order = migrate.ByInteger, migrate.Width{Keys: 100_000}, order
				})
				keys := []int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64}
				for i := range int64(100) {
					keys = append(keys, i)
				}
				for _, k := range keys {
					w.source.Put(row(migrate.Key{strconv.FormatInt(k, 10)}, 1, "x"))
				}
				w.begin()
				if !w.finish(time.Hour) {
					t.Errorf("report %+v", w.report())
				}
				w.same()
				if v := w.verify(migrate.VerifyOptions{Mode: "samples"}); !v.Clean {
					t.Errorf("verdict %+v", v)
				}
			})
		})
	}
}

// TestSlotsBeyondCountingAreRefused: there are more than an integer can tell.
func TestSlotsBeyondCountingAreRefused(t *testing.T) {
	p := migrate.Plan{Slots: migrate.SlotPlan{By: migrate.ByInteger, Width: migrate.Width{Keys: 1}}}
	key := func(i int64) migrate.Key { return migrate.Key{strconv.FormatInt(i, 10)} }
	for _, e := range []migrate.Extent{{Min: key(math.MinInt64), Max: key(5)}, {Min: key(-5), Max: key(math.MaxInt64)}, {Min: key(5), Max: key(math.MaxInt64)}} {
		if s, err := p.Span(e, time.Now()); err == nil {
			t.Errorf("%v to %v make %+v", e.Min, e.Max, s)
		}
	}
}
