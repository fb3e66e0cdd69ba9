package sequence_test

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A traffic is calls of Next over time, all for one sequence.
type traffic struct {
	name     string
	arrivals iter.Seq[time.Duration] // when each call begins
	step     time.Duration           // when a step begins, whose first second is counted apart; 0: none
	steep    bool                    // a step on which the plain mean has to do worse, else nothing is gained
}

// traffics returns the profiles of the specification, and two steeper steps
// where the estimate matters most. Each is long enough for the caches to
// converge; full is minutes longer.
func traffics(full bool) []traffic {
	size := func(small, large float64) float64 {
		if full {
			return large
		}
		return small
	}
	step := func(from, before, after float64) traffic {
		return traffic{arrivals: evenly(before+after, func(s float64) float64 {
			if s < before {
				return from
			}
			return 5000
		}), step: time.Duration(before * float64(time.Second))}
	}
	tenTo, oneTo, minuteTo := step(10, size(60, 120), size(25, 120)), step(1, 120, size(25, 60)), step(1./60, 3000, size(25, 60))
	tenTo.name, oneTo.name, minuteTo.name = "step, 10 to 5,000 a second", "step, 1 to 5,000 a second", "step, 1 a minute to 5,000"
	oneTo.steep, minuteTo.steep = true, true
	sine := size(120, 600) // its period
	return []traffic{
		{name: "steady, 10 a second", arrivals: steadily(size(1200, 3600), 10)},
		{name: steadyHot, arrivals: steadily(size(60, 180), 5000)},
		tenTo, oneTo, minuteTo,
		{name: "sine, 0 to 1,000 a second", arrivals: evenly(size(120, 1200), func(s float64) float64 {
			return 500 * (1 - math.Cos(2*math.Pi*s/sine))
		})},
		{name: "Poisson, 100 a second", arrivals: poisson(size(300, 1200), 100)},
		{name: "bursts, 1,000 for 10 s of 60", arrivals: evenly(size(180, 900), func(s float64) float64 {
			if math.Mod(s, 60) < 10 {
				return 1000
			}
			return 0
		})},
		{name: "one a minute for 24 h", arrivals: steadily(24*3600, 1./60)},
	}
}

// steadyHot is the traffic of the hottest counter, which has a bar of its own.
const steadyHot = "steady, 5,000 a second"

// steadily returns calls at a rate.
func steadily(to, rate float64) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for i := 1.; i/rate < to; i++ {
			if !yield(time.Duration(i / rate * float64(time.Second))) {
				return
			}
		}
	}
}

// evenly returns calls at a rate that depends on the second: one each time its
// integral has grown by one.
func evenly(to float64, rate func(second float64) float64) iter.Seq[time.Duration] {
	const dt = 1e-3
	return func(yield func(time.Duration) bool) {
		sum := 0.
		for i := 0; float64(i)*dt < to; i++ {
			s := float64(i) * dt
			grown := rate(s) * dt
			for next := 1 - sum; next <= grown; next++ {
				if !yield(time.Duration((s + next/grown*dt) * float64(time.Second))) {
					return
				}
			}
			sum = math.Mod(sum+grown, 1)
		}
	}
}

// poisson returns calls that know nothing of each other, the same each time.
func poisson(to, rate float64) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		rnd := rand.New(rand.NewPCG(20260301, 100))
		for s := rnd.ExpFloat64() / rate; s < to; s += rnd.ExpFloat64() / rate {
			if !yield(time.Duration(s * float64(time.Second))) {
				return
			}
		}
	}
}

// figures are what one run of a traffic costs.
type figures struct {
	values      int
	misses      int64 // calls that had to wait
	atStep      int64 // of those, begun in the first second of a step
	leases      int64 // granted by the server
	writes      int64 // of the store, for values
	requests    int64 // to the store, all but polls
	polls       int64 // of the store's generation, one each 2 s
	serverWaits int64 // leases that had to wait for the store
}

// percent returns the share that n requests are of the values.
func (f figures) percent(n int64) float64 { return 100 * float64(n) / float64(f.values) }

// A meter counts the requests to a store.
type meter struct {
	sequence.Store
	mu                      sync.Mutex
	writes, requests, polls int64
}

func (m *meter) count(n *int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*n++
	if n == &m.writes {
		m.requests++
	}
}

func (m *meter) Load(ctx context.Context, name string) (sequence.Record, error) {
	m.count(&m.requests)
	return m.Store.Load(ctx, name)
}

func (m *meter) Advance(ctx context.Context, a sequence.Advance) (sequence.Record, error) {
	m.count(&m.writes)
	return m.Store.Advance(ctx, a)
}

func (m *meter) Swap(ctx context.Context, nonce string, next sequence.Record) (sequence.Record, error) {
	m.count(&m.writes)
	return m.Store.Swap(ctx, nonce, next)
}

func (m *meter) Generation(ctx context.Context) (uint64, error) {
	m.count(&m.polls)
	return m.Store.Generation(ctx)
}

// Round trips take 5 ms and a few nanoseconds, so that no reply comes in the
// very moment of a call: who is first then would be a matter of luck.
const there, back = 2500*time.Microsecond + 7, 2500*time.Microsecond + 13

// A wire is a connection to a server 5 ms away.
type wire struct{ sequence.Leaser }

func (w *wire) Lease(ctx context.Context, req sequence.LeaseRequest) (sequence.LeaseResponse, error) {
	time.Sleep(there)
	resp, err := w.Leaser.Lease(ctx, req)
	time.Sleep(back)
	return resp, err
}

// run sends tr through a client, a server and a store, each 5 ms from the next.
func run(t *testing.T, tr traffic, plainMean bool) (f figures) {
	synctest.Test(t, func(t *testing.T) {
		slow := seqtest.NewFaulty(seqtest.NewMemory())
		store := &meter{Store: slow}
		svc := sequence.NewService(store, sequence.ServiceOptions{})
		create(t, svc, sequence.Spec{Name: "s"})
		slow.Plan(seqtest.Always(seqtest.Fault{Delay: there, Linger: back}))
		c := sequence.NewClient(&wire{Leaser: svc}, sequence.ClientOptions{})
		if plainMean {
			svc.UsePlainMean()
			c.UsePlainMean()
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			time.Sleep(there) // not in the moment of a call, either
			svc.Run(ctx)
		})

		var calls sync.WaitGroup
		var mu sync.Mutex
		var waits, sum int64
		start := time.Now()
		for at := range tr.arrivals {
			time.Sleep(at - time.Since(start))
			calls.Go(func() {
				v, err := c.Next(t.Context(), "s")
				mu.Lock()
				defer mu.Unlock()
				if sum += v; err != nil {
					t.Error(err)
				}
				if time.Since(start) > at {
					waits++
					if tr.step > 0 && at >= tr.step && at < tr.step+time.Second {
						f.atStep++
					}
				}
			})
			f.values++
		}
		calls.Wait()
		st, sst := c.Stats(), svc.Stats()
		f.misses, f.leases, f.serverWaits = st.Blocked, st.Leases, sst.Misses
		store.mu.Lock()
		f.writes, f.requests, f.polls = store.writes, store.requests, store.polls
		store.mu.Unlock()
		if n := int64(f.values); st.Values != n || sum != n*(n+1)/2 {
			t.Errorf("%d values with the sum %d, want 1 to %d", st.Values, sum, n)
		}
		if waits != st.Blocked {
			t.Errorf("%d calls waited, the client counts %d", waits, st.Blocked)
		}
		stop()
		running.Wait()
		c.Close(context.Background())
		svc.Close(context.Background())
	})
	return f
}

// TestRefillsAreAheadOfNeed measures each profile with our estimate and with
// the plain mean of the last minute, and holds ours to the bars.
func TestRefillsAreAheadOfNeed(t *testing.T) {
	full := os.Getenv("TALLYSTICK_FULL") == "1" && !raceDetector()
	var table strings.Builder
	fmt.Fprintf(&table, "%-28s %-5s %8s %7s %9s %7s %7s %7s %9s %7s %8s\n", "calls of one sequence", "rate", "values",
		"misses", "at step", "leases", "s.waits", "writes", "requests", "polls", "store %")
	left := traffics(full)
	for _, tr := range left {
		t.Run(tr.name, func(t *testing.T) {
			left = left[1:]
			ours, plain := run(t, tr, false), run(t, tr, true)
			for _, line := range []struct {
				rate string
				f    figures
			}{{"ours", ours}, {"mean", plain}} {
				f := line.f
				fmt.Fprintf(&table, "%-28s %-5s %8d %7d %9d %7d %7d %7d %9d %7d %8.4f\n", tr.name, line.rate, f.values,
					f.misses, f.atStep, f.leases, f.serverWaits, f.writes, f.requests, f.polls, f.percent(f.requests))
			}
			if misses := ours.misses - ours.atStep; misses*1000 > int64(ours.values) {
				t.Errorf("%d misses, more than 1 in 1,000", misses)
			}
			if ours.misses > plain.misses {
				t.Errorf("%d misses, %d with the plain mean", ours.misses, plain.misses)
			}
			if tr.steep && ours.misses*2 > plain.misses {
				t.Errorf("%d misses, not half of the %d with the plain mean", ours.misses, plain.misses)
			}
			if most := int64(ours.values)/1000 + 2; ours.writes > most {
				t.Errorf("%d store writes, want %d at most", ours.writes, most)
			}
			if share := ours.percent(ours.requests + ours.polls); tr.name == steadyHot && share >= 0.02 {
				t.Errorf("requests to the store, polls included, are %.4f %% of the values, want less than 0.02 %%", share)
			}
		})
	}
	t.Logf("round trips of 5 ms, client cache at most 500\n%s", &table)
	if len(left) > 0 { // -run chose some
		return
	}
	name := "profiles.golden"
	if full {
		name = "profiles_full.golden"
	}
	golden(t, name, table.String())
}

// raceDetector reports whether it is compiled in: it makes a test slower by a
// factor of ten.
func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; accept with -update):\n%s", file, d)
	}
}
