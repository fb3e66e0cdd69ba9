package migrate_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// marked is the state as a verification sees it that is killed: from then on
// it saves nothing.
type marked struct {
	migrate.State
	dead chan struct{}
}

func (m marked) SaveMark(ctx context.Context, verifier string, at migrate.Mark) error {
	select {
	case <-m.dead:
		return errDead
	default:
		return m.State.SaveMark(ctx, verifier, at)
	}
}

// killedVerify verifies until after and reports whether it came to its end
// before.
func (w *world) killedVerify(after time.Duration, o migrate.VerifyOptions) (migrate.Verdict, bool) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	dead := make(chan struct{})
	timer := time.AfterFunc(after, func() {
		close(dead)
		cancel()
	})
	defer timer.Stop()
	m := migrate.New(w.plan, w.source, w.sink, marked{w.state.Pod(), dead}, migrate.Options{})
	v, err := m.Verify(ctx, o)
	if err != nil && !errors.Is(err, context.Canceled) {
		w.t.Error(err)
	}
	return v, err == nil
}

// slowWorld has 4,000 rows on both sides that take a while to compare: 400
// pages, four of them a second, and then 200 parts of a scan, two a second. The
// migration is in progress.
func slowWorld(t *testing.T) *world {
	w := newWorld(t, func(p *migrate.Plan) { p.Workers, p.PageRows = 2, 10 })
	for h := range 40 {
		w.fill(h, 100)
	}
	for _, r := range w.source.All() {
		w.sink.Put(r)
	}
	w.sink.Latency, w.sink.ScanPart = 500*time.Millisecond, 20
	w.begin()
	s, first := w.open(), w.axis.At(start)
	term, err := s.Lead(t.Context(), "keeper", time.Second)
	err = errors.Join(err, s.Survey(t.Context(), term, migrate.Survey{Slots: migrate.Span{Lo: first, Hi: first + 40}, Rows: 4_000}),
		s.Move(t.Context(), 1, migrate.ToStart, migrate.InProgress))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// open returns the state as one more pod sees it.
func (w *world) open() migrate.State {
	w.t.Helper()
	s := w.state.Pod()
	v, err := s.View(context.Background())
	if err == nil {
		err = s.Open(context.Background(), v.Plan)
	}
	if err != nil {
		w.t.Error(err)
	}
	return s
}

// again verifies and returns how many rows that read for pages.
func (w *world) again(o migrate.VerifyOptions) (v migrate.Verdict, read int64) {
	before := w.source.RowsRead()
	v = w.verify(o)
	return v, int64(w.source.RowsRead() - before)
}

// repeated is how many rows may be compared twice after a kill: of five seconds
// and of the pages under way.
const repeated = 24 * 10

func TestAKilledVerificationIsGoneOnWith(t *testing.T) {
	for name, c := range map[string]struct {
		after       time.Duration
		least, most int64 // rows that the next one reads
	}{
		"at once":              {0, 4_000, 4_000},
		"early":                {20 * time.Second, 3_200 - repeated, 3_200 + repeated},
		"late":                 {90 * time.Second, 400 - repeated, 400 + repeated},
		"in the scan":          {150 * time.Second, 0, 0},
		"at the end of it":     {199 * time.Second, 0, 0},
		"while it looks again": {205 * time.Second, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := slowWorld(t)
				rows := w.source.All()
				changed, deleted, added := rows[100].Key, rows[3_800].Key, w.key(3)
				w.sink.Put(row(changed, 1, "something else"))
				w.sink.Drop(deleted)
				w.sink.Put(row(added, 1, "from nowhere"))
				if _, ended := w.killedVerify(c.after, migrate.VerifyOptions{Mode: "full"}); ended {
					t.Fatal("it was not killed")
				}
				var from migrate.Resumption
				v, read := w.again(migrate.VerifyOptions{Mode: "full", Resumed: func(r migrate.Resumption) { from = r }})
				if read < c.least || read > c.most {
					t.Errorf("the second one read %d rows", read)
				}
				if v.Compared != 4_000 || v.Resumed != 4_000-read || from.Compared != v.Resumed || from.Percent() != v.Resumed/40 {
					t.Errorf("compared %d, gone on from %d, %+v", v.Compared, v.Resumed, from)
				}
				if v.Clean || len(v.Different) != 1 || len(v.Missing) != 1 || len(v.Extra) != 1 ||
					!v.Different[0].Equal(changed) || !v.Missing[0].Equal(deleted) || !v.Extra[0].Equal(added) {
					t.Errorf("verdict %+v", v)
				}
				if _, read := w.again(migrate.VerifyOptions{Mode: "full"}); read != 4_000 {
					t.Errorf("after the verdict %d rows are read", read)
				}
			})
		})
	}
}

// TestAVerificationKilledAgainAndAgainEnds kills at random moments, and by a
// signal that lets it say where it is.
func TestAVerificationKilledAgainAndAgainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slowWorld(t)
		lost := w.source.All()[1_400].Key
		w.sink.Drop(lost)
		kills := 0
		for {
			after := time.Second + rand.N(40*time.Second)
			v, ended := w.killedVerify(after, migrate.VerifyOptions{Mode: "full"})
			if ended {
				if v.Compared != 4_000 || len(v.Missing) != 1 || !v.Missing[0].Equal(lost) {
					t.Errorf("verdict after %d kills: %+v", kills, v)
				}
				break
			}
			if kills++; kills > 200 {
				t.Fatal("it does not end")
			}
		}
		if n := w.source.RowsRead(); n > 4_000+kills*repeated {
			t.Errorf("%d rows read after %d kills", n, kills)
		}
	})
}

func TestAVerificationThatIsToldToEndComparesNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slowWorld(t)
		ctx, cancel := context.WithTimeout(t.Context(), 33*time.Second)
		defer cancel()
		if _, err := w.pod().Verify(ctx, migrate.VerifyOptions{Mode: "full"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		compared := int64(33 * 4 * 10)
		if v, read := w.again(migrate.VerifyOptions{Mode: "full"}); !v.Clean || read > 4_000-compared+4*10 {
			t.Errorf("read %d rows, verdict %+v", read, v)
		}
	})
}

// TestWhatHoldsNoMoreIsNotGoneOnWith: each of these makes a verification begin
// anew.
func TestWhatHoldsNoMoreIsNotGoneOnWith(t *testing.T) {
	for name, change := range map[string]func(*world, *migrate.VerifyOptions){
		"nothing changed": func(*world, *migrate.VerifyOptions) {},
		"asked for":       func(_ *world, o *migrate.VerifyOptions) { o.Restart = true },
		"a day later":     func(*world, *migrate.VerifyOptions) { time.Sleep(24*time.Hour + time.Minute) },
		"another plan": func(w *world, _ *migrate.VerifyOptions) {
			if err := w.state.Pod().Reset(context.Background()); err != nil {
				w.t.Error(err)
			}
			w.plan.Text += "\n"
		},
		"a later run":         func(w *world, _ *migrate.VerifyOptions) { w.startAgain() },
		"a row in quarantine": func(w *world, _ *migrate.VerifyOptions) { w.setAside(w.source.All()[3].Key) },
		"a bad verdict": func(w *world, _ *migrate.VerifyOptions) {
			rows := w.source.All()
			w.sink.Drop(rows[len(rows)-1].Key)
			if v := w.verify(migrate.VerifyOptions{Mode: "samples"}); v.Clean {
				w.t.Error("the samples do not find it")
			}
			w.sink.Put(rows[len(rows)-1])
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := slowWorld(t)
				w.killedVerify(time.Minute, migrate.VerifyOptions{Mode: "full"})
				o := migrate.VerifyOptions{Mode: "full"}
				change(w, &o)
				if _, read := w.again(o); (read >= 3_990) != (name != "nothing changed") {
					t.Errorf("%d rows read", read)
				}
			})
		})
	}
}

// setAside puts a row in quarantine, as a worker does.
func (w *world) setAside(k migrate.Key) {
	w.t.Helper()
	ctx, s := context.Background(), w.open()
	v, err := s.View(ctx)
	if err != nil {
		w.t.Error(err)
	}
	c, err := s.Claim(ctx, migrate.ClaimRequest{Pass: migrate.Copying, TTL: time.Minute, Within: v.Plan.Slots})
	if err = errors.Join(err, s.Quarantine(ctx, c, []migrate.Quarantined{{Key: k}}), s.Release(ctx, c)); err != nil {
		w.t.Error(err)
	}
}

// startAgain stops and starts the migration.
func (w *world) startAgain() {
	w.t.Helper()
	ctx, s := context.Background(), w.open()
	err := errors.Join(s.Move(ctx, 1, migrate.InProgress, migrate.ToStop), s.Move(ctx, 1, migrate.ToStop, migrate.Stopped), s.Move(ctx, 1, migrate.Stopped, migrate.ToStart))
	if err != nil {
		w.t.Error(err)
	}
}

// TestTwoVerificationsAtOnceBothComeToAVerdict: the later one goes on from
// where the earlier one has come, which compares on to its end.
func TestTwoVerificationsAtOnceBothComeToAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slowWorld(t)
		var both sync.WaitGroup
		verify := func(least, most int64) {
			both.Go(func() {
				if v := w.verify(migrate.VerifyOptions{Mode: "full"}); !v.Clean || v.Compared != 4_000 || v.Resumed < least || v.Resumed > most {
					t.Errorf("verdict %+v", v)
				}
			})
		}
		verify(0, 0)
		time.Sleep(60 * time.Second)
		verify(2_400-repeated, 2_400)
		time.Sleep(15 * time.Second)
		verify(3_000-2*repeated, 3_000) // whose mark it is now
		both.Wait()
		if _, read := w.again(migrate.VerifyOptions{Mode: "full"}); read != 4_000 {
			t.Errorf("after the verdicts %d rows are read", read)
		}
	})
}

// TestManySuspectsStopTheMarkNotTheVerification: what differs so often is found
// however often it is killed, and the mark stays small.
func TestManySuspectsStopTheMarkNotTheVerification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slowWorld(t)
		for _, r := range w.source.All()[:2_700] {
			w.sink.Drop(r.Key)
		}
		w.killedVerify(85*time.Second, migrate.VerifyOptions{Mode: "full"})
		v, read := w.again(migrate.VerifyOptions{Mode: "full"})
		if v.Clean || len(v.Missing) != 1000 || v.Totals.Missing != 2_700 || v.Compared != 4_000 {
			t.Errorf("%d missing of %d, %d listed", v.Totals.Missing, v.Compared, len(v.Missing))
		}
		if most := int64(700 + repeated); read < 700 || read > most {
			t.Errorf("%d rows read", read)
		}
	})
}

// elsewhere is a state whose clock is not this process's.
type elsewhere struct {
	migrate.State
	ahead time.Duration
}

func (s elsewhere) View(ctx context.Context) (migrate.View, error) {
	v, err := s.State.View(ctx)
	v.Now = v.Now.Add(s.ahead)
	return v, err
}

// TestAMarkIsOfTheStatesClock: the process that was killed has one that is days
// behind, or ahead.
func TestAMarkIsOfTheStatesClock(t *testing.T) {
	for _, ahead := range []time.Duration{-72 * time.Hour, 72 * time.Hour} {
		for _, pause := range []time.Duration{time.Hour, 25 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				w := slowWorld(t)
				verify := func(ctx context.Context) (v migrate.Verdict) {
					v, _ = migrate.New(w.plan, w.source, w.sink, elsewhere{w.state.Pod(), ahead}, migrate.Options{}).Verify(ctx, migrate.VerifyOptions{Mode: "full"})
					return v
				}
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
				defer cancel()
				verify(ctx)
				time.Sleep(pause)
				if v := verify(t.Context()); !v.Clean || v.Resumed > 0 != (pause < 24*time.Hour) {
					t.Errorf("%s ahead, after %s: verdict %+v", ahead, pause, v)
				}
			})
		}
	}
}
