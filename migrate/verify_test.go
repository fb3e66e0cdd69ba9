package migrate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// TestARowThatCannotBeStoredIsMissing: it came after the copy, so it is not in
// quarantine, and no repair helps.
func TestARowThatCannotBeStoredIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(1, 100)
		w.begin()
		w.run(t.Context(), 1)
		w.pods.Wait()
		bad := w.source.All()[40].Key
		w.sink.Drop(bad)
		w.sink.Refuse = func(r migrate.Row) string {
			if r.Key.Equal(bad) {
				return "too large"
			}
			return ""
		}
		for _, repair := range []bool{false, true, false} {
			if v := w.verify(migrate.VerifyOptions{Mode: "full", Repair: repair}); v.Clean || len(v.Missing) != 1 || !v.Missing[0].Equal(bad) {
				t.Errorf("verdict %+v", v)
			}
		}
	})
}

// TestARowThatCannotBeMappedIsNotPassedOver: whatever the sink has of it.
func TestARowThatCannotBeMappedIsNotPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(1, 100)
		w.begin()
		w.run(t.Context(), 1)
		w.pods.Wait()
		bad := w.source.All()[40].Key
		m := migrate.New(w.plan, w.source, w.sink, w.state.Pod(), migrate.Options{Mapping: func(r migrate.Row) (migrate.Row, error) {
			if r.Key.Equal(bad) {
				return r, errors.New("no")
			}
			return r, nil
		}})
		v, err := m.Verify(t.Context(), migrate.VerifyOptions{Mode: "full"})
		if err != nil || v.Clean || len(v.Different) != 1 || !v.Different[0].Equal(bad) || len(v.Extra) != 0 {
			t.Errorf("verdict %+v, %v", v, err)
		}
	})
}

func TestCountsAreOfBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(1, 120)
		w.begin()
		w.run(t.Context(), 1)
		w.pods.Wait()
		keys := w.source.All()
		w.sink.Drop(keys[3].Key)
		w.sink.Drop(keys[4].Key)
		w.sink.PutTombstone(w.key(2), 1)
		w.sink.Put(row(w.key(2), 1, "from nowhere"))
		if v := w.verify(migrate.VerifyOptions{Mode: "counts"}); v.Clean || v.SourceRows != 120 || v.SinkRows != 119 || v.Compared != 120 {
			t.Errorf("verdict %+v", v)
		}
	})
}

// TestVerificationsThatCannotBeAreRefusedFirst: before anything is read.
func TestVerificationsThatCannotBeAreRefusedFirst(t *testing.T) {
	w := newWorld(t)
	w.fill(1, 10)
	for _, o := range []migrate.VerifyOptions{{Mode: "counts", Only: new(migrate.Slot)}, {Mode: "counts", Repair: true}, {Mode: ""}, {Mode: "all"}} {
		if _, err := w.pod().Verify(t.Context(), o); err == nil {
			t.Errorf("%+v is not refused", o)
		}
	}
	if n := w.source.Calls(migtest.SourcePage) + w.source.Calls(migtest.SourceExtent); n > 0 {
		t.Errorf("%d calls of the source", n)
	}
}

// TestRecheckIsThePlans: a row whose second write takes a minute is equal when
// looked at after two.
func TestRecheckIsThePlans(t *testing.T) {
	for delays, want := range map[string]bool{"[1s, 5s, 30s]": false, "[2m]": true, "[]": false} {
		t.Run(delays, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := migrate.ParsePlan([]byte(plan+"verify: {recheck: "+delays+"}\n"), env)
				if err != nil {
					t.Fatal(err)
				}
				w := newWorld(t, func(q *migrate.Plan) { q.Verify = p.Verify })
				w.fill(1, 10)
				for _, r := range w.source.All()[1:] {
					w.sink.Put(r)
				}
				late := time.AfterFunc(time.Minute, func() { w.sink.Put(w.source.All()[0]) })
				defer late.Stop()
				if v := w.verify(migrate.VerifyOptions{Mode: "full"}); v.Clean != want {
					t.Errorf("verdict %+v", v)
				}
			})
		})
	}
}

// TestManySuspectsAreNotKeptUntilTheEnd: of a sink that is empty, what is
// missing is read again while the source is still being read.
func TestManySuspectsAreNotKeptUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(p *migrate.Plan) { p.PageRows = 1000 })
		for h := range 64 {
			w.fill(h, 1000)
		}
		w.source.SetDelay(200 * time.Millisecond)
		first, once := 0, sync.Once{}
		w.source.Before(func(_ context.Context, op migtest.SourceOp) error {
			if op == migtest.SourceGet {
				once.Do(func() { first = w.source.RowsRead() })
			}
			return nil
		})
		if v := w.verify(migrate.VerifyOptions{Mode: "full"}); v.Clean || len(v.Missing) != 1000 || v.Totals.Missing != 64_000 || v.Compared != 64_000 {
			t.Errorf("%d missing of %d, %d listed", v.Totals.Missing, v.Compared, len(v.Missing))
		}
		if first < 50_000 || first == 64_000 {
			t.Errorf("suspects were read again after %d rows", first)
		}
	})
}
