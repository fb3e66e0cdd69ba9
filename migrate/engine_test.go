package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// start is when the rows of tests begin: bubbles begin in 2000.
var start = time.Date(1999, 12, 1, 0, 0, 0, 0, time.UTC)

// A world is a source, a sink and a state in memory, and pods that work on
// them. Time is fake.
type world struct {
	t      testing.TB
	axis   migrate.Axis
	plan   migrate.Plan
	source *migtest.Source
	sink   *migtest.Sink
	state  *migtest.State
	pods   sync.WaitGroup
}

func newWorld(t testing.TB, edit ...func(*migrate.Plan)) *world {
	t.Helper()
	p, err := migrate.ParsePlan([]byte(plan), env)
	if err != nil {
		t.Fatal(err)
	}
	p.PageRows, p.Slots.Sweep = 50, 0
	for _, f := range edit {
		f(&p)
	}
	w := &world{t: t, plan: p, axis: p.Axis(), source: migtest.NewSource(p.Axis(), p.Oldest()), sink: migtest.NewSink(p.Write.Mode), state: migtest.NewState(p.Axis())}
	w.sink.Latency = 5 * time.Millisecond
	return w
}

// key returns a key in the given hour after start.
func (w *world) key(hour int) migrate.Key {
	k := w.axis.Bound(w.axis.At(start) + int64(hour))[0]
	return migrate.Key{k[:10] + fmt.Sprintf("%016d", rand.Uint64N(1e16))}
}

func row(k migrate.Key, version int64, text string) migrate.Row {
	return migrate.Row{Key: k, Version: version, Fields: []migrate.Field{
		{Name: "id", Value: migrate.Value{Kind: migrate.Text, Text: k[0]}},
		{Name: "data", Value: migrate.Value{Kind: migrate.Text, Text: text}, Map: true},
	}}
}

// fill puts n rows into the given hour.
func (w *world) fill(hour, n int) {
	var rows []migrate.Row
	for range n {
		k := w.key(hour)
		rows = append(rows, row(k, 1, "of "+k[0]))
	}
	w.source.Put(rows...)
}

func (w *world) pod() *migrate.Migration {
	return migrate.New(w.plan, w.source, w.sink, w.state.Pod(), migrate.Options{})
}

// run starts n pods that run until they are finished or ctx ends.
func (w *world) run(ctx context.Context, n int) {
	for range n {
		m := w.pod()
		w.pods.Go(func() {
			if err := m.Run(ctx); err != nil {
				w.t.Errorf("pod: %v", err)
			}
		})
	}
}

// finishesWithin runs a pod and reports whether it finishes in time.
func (w *world) finishesWithin(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	w.run(ctx, 1)
	w.pods.Wait()
	return w.report().Status == migrate.Finished
}

func (w *world) begin() {
	w.t.Helper()
	if s, err := w.pod().Start(context.Background()); err != nil || s != migrate.ToStart {
		w.t.Errorf("start: %s, %v", s, err)
	}
}

func (w *world) report() migrate.Report {
	w.t.Helper()
	r, err := w.pod().Report(context.Background())
	if err != nil {
		w.t.Error(err)
	}
	return r
}

// same compares sink and source row by row, without the engine.
func (w *world) same() {
	w.t.Helper()
	rows := w.source.All()
	for _, r := range rows {
		got, ok := w.sink.Row(r.Key)
		if !ok || got.Version != r.Version || got.Fields[1].Value.Text != r.Fields[1].Value.Text {
			w.t.Errorf("row %s: the sink has %+v, %v; the source %+v", r.Key, got, ok, r)
			return
		}
	}
	live := 0
	err := w.sink.Scan(context.Background(), "", func(items []migrate.Stored, _ string) error {
		for _, it := range items {
			if !it.Tombstone {
				live++
			}
		}
		return nil
	})
	if err != nil || live != len(rows) {
		w.t.Errorf("the sink has %d items, the source %d rows (%v)", live, len(rows), err)
	}
}

func (w *world) verify(o migrate.VerifyOptions) migrate.Verdict {
	w.t.Helper()
	v, err := w.pod().Verify(context.Background(), o)
	if err != nil {
		w.t.Error(err)
	}
	return v
}

func TestPodsCopyEverything(t *testing.T) {
	for _, order := range []string{"newest-first", "oldest-first"} {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(p *migrate.Plan) { p.Slots.Order = order })
				for range 40 {
					w.fill(rand.IntN(300), rand.IntN(120))
				}
				w.begin()
				w.run(t.Context(), 3)
				w.pods.Wait()
				w.same()
				r := w.report()
				if r.Status != migrate.Finished || r.Slots.Finished != r.Slots.Total || r.Rows.Written != int64(len(w.source.All())) {
					t.Errorf("report %+v", r)
				}
				for _, mode := range []string{"full", "samples", "counts"} {
					if v := w.verify(migrate.VerifyOptions{Mode: mode}); !v.Clean || v.Compared == 0 {
						t.Errorf("verdict %+v", v)
					}
				}
			})
		})
	}
}

func TestEmptyHoursCostOneLookEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const rows = 300
		for i := range rows {
			w.fill((i-rows)*100, 1)
		}
		w.begin()
		w.run(t.Context(), 1)
		w.pods.Wait()
		w.same()
		if n := w.source.Calls(migtest.SourceNearest); n > 2*rows {
			t.Errorf("%d looks at the index for %d hours with rows", n, rows)
		}
	})
}

// TestStopAndStartGoOnFromWhereItWas stops in the middle, starts again, and
// writes no row twice.
func TestStopAndStartGoOnFromWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for h := range 20 {
			w.fill(h, 200)
		}
		w.begin()
		w.run(t.Context(), 2)
		for cycle := range 3 {
			time.Sleep(8 * time.Second)
			s, err := w.pod().Stop(t.Context(), true)
			if err != nil || s != migrate.Stopped && s != migrate.Finished {
				t.Errorf("cycle %d: stop: %s, %v", cycle, s, err)
			}
			if s == migrate.Finished {
				break
			}
			before := w.sink.Counts().Requests
			time.Sleep(time.Minute)
			if after := w.sink.Counts().Requests; after != before {
				t.Errorf("%d requests while stopped", after-before)
			}
			w.begin()
		}
		w.pods.Wait()
		w.same()
	})
}

// TestDeadPodsLoseNothing: pods whose every call hangs from some moment on, as
// of a machine that died, are taken over when their claims expire.
func TestDeadPodsLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for h := range 30 {
			w.fill(h, 150)
		}
		w.begin()
		var killed sync.WaitGroup
		for i := range 5 {
			dead := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			m := migrate.New(w.plan, w.source, w.sink, mortal{w.state.Pod(), dead}, migrate.Options{})
			killed.Go(func() { m.Run(ctx) })
			time.Sleep(time.Duration(500+i*700) * time.Millisecond)
			close(dead) // from now on nothing of it arrives
			cancel()
		}
		w.run(t.Context(), 2)
		w.pods.Wait()
		killed.Wait()
		w.same()
	})
}

// mortal is the state as a pod sees it that dies: its calls do not arrive.
type mortal struct {
	migrate.State
	dead chan struct{}
}

var errDead = errors.New("dead")

func (m mortal) gone() bool {
	select {
	case <-m.dead:
		return true
	default:
		return false
	}
}

func (m mortal) Release(ctx context.Context, c migrate.Claim) error {
	if m.gone() {
		return errDead
	}
	return m.State.Release(ctx, c)
}

func (m mortal) Resign(ctx context.Context, term migrate.Term) error {
	if m.gone() {
		return errDead
	}
	return m.State.Resign(ctx, term)
}

// TestDoubleWriterNeverLoses: an application inserts, updates and deletes on
// both sides the whole time; the copy overwrites nothing newer and brings
// nothing back.
func TestDoubleWriterNeverLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var keys []migrate.Key
		for h := range 30 {
			w.fill(h, 100)
		}
		for _, r := range w.source.All() {
			keys = append(keys, r.Key)
		}
		ctx, stop := context.WithCancel(t.Context())
		versions := make(map[string]int64)
		var writing sync.WaitGroup
		writing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				k := keys[rand.IntN(len(keys))]
				versions[k.String()]++
				v := 1 + versions[k.String()]
				if rand.IntN(4) == 0 {
					w.source.Delete(k)
					time.Sleep(3 * time.Millisecond)
					w.sink.PutTombstone(k, v)
				} else {
					r := row(k, v, fmt.Sprintf("change %d", i))
					w.source.Put(r)
					time.Sleep(3 * time.Millisecond)
					w.sink.Put(r)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		w.begin()
		w.run(t.Context(), 3)
		w.pods.Wait()
		if v := w.verify(migrate.VerifyOptions{Mode: "full"}); !v.Clean {
			t.Errorf("verdict while it goes on writing: %+v", v)
		}
		stop()
		writing.Wait()
		w.same()
	})
}

func TestRowsThatCannotBeStoredAreSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(1, 100)
		bad := w.source.All()[40].Key
		w.sink.Refuse = func(r migrate.Row) string {
			if r.Key.Equal(bad) && r.Version == 1 {
				return "too large"
			}
			return ""
		}
		w.begin()
		w.run(t.Context(), 1)
		w.pods.Wait()
		if r := w.report(); r.Status != migrate.Finished || r.Rows.Quarantined != 1 {
			t.Errorf("report %+v", r)
		}
		if v := w.verify(migrate.VerifyOptions{Mode: "full"}); v.Clean || v.Quarantined != 1 || len(v.Missing) != 0 {
			t.Errorf("verdict with a row in quarantine: %+v", v)
		}
		w.source.Put(row(bad, 2, "corrected"))
		if settled, left, err := w.pod().Replay(t.Context()); settled != 1 || left != 0 || err != nil {
			t.Errorf("replay: %d settled, %d left, %v", settled, left, err)
		}
		if v := w.verify(migrate.VerifyOptions{Mode: "full"}); !v.Clean {
			t.Errorf("verdict after replay: %+v", v)
		}
		w.same()
	})
}

func TestVerifyNamesWhatIsWrongAndMendsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(1, 300)
		w.begin()
		w.run(t.Context(), 1)
		w.pods.Wait()
		rows := w.source.All()
		changed, deleted, added := rows[10].Key, rows[200].Key, w.key(2)
		w.sink.Put(row(changed, 1, "something else"))
		w.sink.Drop(deleted)
		w.sink.Put(row(added, 1, "from nowhere"))
		for _, repair := range []bool{false, true} {
			v := w.verify(migrate.VerifyOptions{Mode: "full", Repair: repair})
			if v.Clean || len(v.Different) != 1 || len(v.Missing) != 1 || len(v.Extra) != 1 ||
				!v.Different[0].Equal(changed) || !v.Missing[0].Equal(deleted) || !v.Extra[0].Equal(added) {
				t.Errorf("verdict %+v", v)
			}
		}
		if v := w.verify(migrate.VerifyOptions{Mode: "full"}); !v.Clean {
			t.Errorf("verdict after the repair: %+v", v)
		}
	})
}

// TestHotSlotIsShared: nearly all rows lie in one hour; idle workers get parts
// of it.
func TestHotSlotIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(hot bool) time.Duration {
			w := newWorld(t)
			w.sink.Latency = 20 * time.Millisecond
			for h := range 40 {
				n := 500
				if hot && h == 20 {
					n = 20_000
				} else if hot {
					n = 5
				}
				w.fill(h, n)
			}
			began := time.Now()
			w.begin()
			w.run(t.Context(), 1)
			w.pods.Wait()
			w.same()
			return time.Since(began)
		}
		even, hot := took(false), took(true)
		t.Logf("even %v, hot %v", even, hot)
		if hot > even*3/2 {
			t.Errorf("one hot hour takes %v, an even spread %v", hot, even)
		}
	})
}

func TestLostStateStopsEveryPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for h := range 50 {
			w.fill(h, 100)
		}
		w.begin()
		var pods sync.WaitGroup
		for range 3 {
			m := w.pod()
			pods.Go(func() {
				if err := m.Run(t.Context()); !errors.Is(err, migrate.ErrStateLost) {
					t.Errorf("pod ended with %v", err)
				}
			})
		}
		for w.report().Rows.Read == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		w.state.Lose()
		pods.Wait()
	})
}

func TestTryRecordsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(1, 300)
		w.fill(2, 300)
		slot := migrate.Slot{Index: w.axis.At(start) + 1}
		for _, c := range []struct {
			only *migrate.Slot
			max  int64
			want int64
		}{{nil, 120, 120}, {&slot, 0, 300}, {nil, 0, 600}} {
			counts, refused, err := w.pod().Try(t.Context(), c.only, c.max)
			if err != nil || counts.Read != c.want || len(refused) != 0 {
				t.Errorf("try: %+v, %d refused, %v", counts, len(refused), err)
			}
		}
		if r := w.report(); r.Status != migrate.NotStarted || r.Rows.Read != 0 {
			t.Errorf("report after tries: %+v", r)
		}
		w.same()
	})
}

// TestSweepReadsOnlyTheNewest: what is read twice is what lies within the sweep,
// and what was committed late there is found.
func TestSweepReadsOnlyTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(p *migrate.Plan) { p.Slots.Sweep = migrate.Duration(5 * time.Hour) })
		hours := int(time.Since(start).Hours())
		for h := hours - 30; h < hours-1; h++ {
			w.fill(h, 100)
		}
		w.begin()
		w.run(t.Context(), 1)
		for w.report().Phase == migrate.PhaseCopy {
			time.Sleep(100 * time.Millisecond)
		}
		w.fill(hours-3, 7) // late
		w.pods.Wait()
		w.same()
		if n := w.report().Rows.Read; n > 2900+700 {
			t.Errorf("%d rows read of 2907, 500 of them twice", n)
		}
	})
}

func TestCleanupWaitsForWhatMayStillArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(1, 50)
		dead := w.source.All()[7].Key
		w.begin()
		w.run(t.Context(), 1)
		w.pods.Wait()
		w.source.Delete(dead)
		w.sink.PutTombstone(dead, 2)
		if _, err := w.pod().Cleanup(t.Context()); !errors.Is(err, migrate.ErrWrongStatus) {
			t.Errorf("clean-up before a verification: %v", err)
		}
		if v := w.verify(migrate.VerifyOptions{Mode: "full"}); !v.Clean {
			t.Errorf("verdict %+v", v)
		}
		if _, err := w.pod().Cleanup(t.Context()); !errors.Is(err, migrate.ErrWrongStatus) {
			t.Errorf("clean-up at once: %v", err)
		}
		w.verify(migrate.VerifyOptions{Mode: "counts"}) // takes nothing back
		time.Sleep(20 * time.Minute)
		if n, err := w.pod().Cleanup(t.Context()); n != 1 || err != nil {
			t.Errorf("clean-up: %d removed, %v", n, err)
		}
		w.same()
	})
}

// TestCleanupWaitsForWritesWithoutAClaim: a drain that was held up until long
// after the last slot, a replay, and a repair.
func TestCleanupWaitsForWritesWithoutAClaim(t *testing.T) {
	for name, write := range map[string]func(w *world, k migrate.Key){
		"drain": func(*world, migrate.Key) {},
		"replay": func(w *world, k migrate.Key) {
			w.sink.Refuse = nil
			if settled, _, err := w.pod().Replay(w.t.Context()); settled != 1 || err != nil {
				w.t.Errorf("settled %d, %v", settled, err)
			}
		},
		"repair": func(w *world, k migrate.Key) {
			w.sink.Drop(k)
			w.verify(migrate.VerifyOptions{Mode: "full", Repair: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.fill(1, 50)
				k := w.source.All()[7].Key
				w.source.Note(k)
				until := time.Now().Add(25 * time.Minute)
				w.source.Before(func(_ context.Context, op migtest.SourceOp) error {
					if op == migtest.SourcePending && time.Now().Before(until) {
						return migrate.ErrTransient // the source is away
					}
					return nil
				})
				if name == "replay" {
					w.sink.Refuse = func(r migrate.Row) string { return map[bool]string{true: "too large"}[r.Key.Equal(k)] }
				}
				w.begin()
				if !w.finishesWithin(3 * time.Hour) {
					t.Fatal("not finished")
				}
				if name != "drain" {
					time.Sleep(time.Hour)
				}
				write(w, k)
				last := time.Now()
				if v := w.verify(migrate.VerifyOptions{Mode: "full"}); !v.Clean {
					t.Errorf("verdict %+v", v)
				}
				for time.Since(last) < 20*time.Minute {
					if _, err := w.pod().Cleanup(t.Context()); !errors.Is(err, migrate.ErrWrongStatus) {
						t.Fatalf("%s after the last write: %v", time.Since(last), err)
					}
					time.Sleep(time.Minute)
				}
				time.Sleep(time.Minute)
				if _, err := w.pod().Cleanup(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestReadLimitHoldsForAllPods: three pods together read no faster than the
// plan says.
func TestReadLimitHoldsForAllPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(p *migrate.Plan) { p.Limits.ReadRows = 100 })
		for h := range 60 {
			w.fill(h, 100)
		}
		w.begin()
		began := time.Now()
		w.run(t.Context(), 3)
		w.pods.Wait()
		w.same()
		if took := time.Since(began); took < 45*time.Second || took > 2*time.Minute {
			t.Errorf("6000 rows at 100 a second took %v", took)
		}
	})
}

// TestReadingPausesWhileReplicasAreBehind: nothing is read for as long as a
// replica is further behind than the plan allows, and all is copied then.
func TestReadingPausesWhileReplicasAreBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(p *migrate.Plan) { p.Limits.ReplicaLag = migrate.Duration(10 * time.Second) })
		for h := range 10 {
			w.fill(h, 100)
		}
		w.source.SetLag(11 * time.Second)
		w.begin()
		began := time.Now()
		time.AfterFunc(time.Minute, func() { w.source.SetLag(10 * time.Second) })
		w.run(t.Context(), 2)
		w.pods.Wait()
		w.same()
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("took %v, want a minute and a little", took)
		}
	})
}
