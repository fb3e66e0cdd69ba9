package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// create makes a sequence in svc.
func create(t testing.TB, svc sequence.Admin, spec sequence.Spec) sequence.Record {
	t.Helper()
	res, err := svc.Create(t.Context(), sequence.CreateRequest{Specs: []sequence.Spec{spec}})
	if err != nil {
		t.Fatal(err)
	}
	if res[0].Err != nil {
		t.Fatal(res[0].Err)
	}
	return res[0].Record
}

func next(t testing.TB, c *sequence.Client, name string) int64 {
	t.Helper()
	v, err := c.Next(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestClientCountsLikeASequence(t *testing.T) {
	svc := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
	create(t, svc, sequence.Spec{Name: "orders_seq", Start: new(int64(1001)), Increment: new(int64(5))})
	c := sequence.NewClient(svc, sequence.ClientOptions{})
	for i := range int64(10_000) {
		if got, want := next(t, c, "orders_seq"), 1001+5*i; got != want {
			t.Fatalf("value %d = %d, want %d", i, got, want)
		}
	}
}

func TestRestartOfEverythingBurnsNothing(t *testing.T) {
	store := seqtest.NewMemory()
	want := int64(1)
	for range 5 {
		svc := sequence.NewService(store, sequence.ServiceOptions{})
		if want == 1 {
			create(t, svc, sequence.Spec{Name: "s"})
		}
		c := sequence.NewClient(svc, sequence.ClientOptions{})
		for range 777 {
			if got := next(t, c, "s"); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
			want++
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := svc.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for cause, n := range svc.Stats().Burned {
			if n != 0 {
				t.Errorf("%d values burned by %s", n, cause)
			}
		}
		if _, err := c.Next(t.Context(), "s"); !errors.Is(err, sequence.ErrClosed) {
			t.Errorf("Next after Close: %v", err)
		}
		if _, err := c.Next(t.Context(), "other"); !errors.Is(err, sequence.ErrClosed) {
			t.Errorf("Next of another sequence after Close: %v", err)
		}
	}
}

// TestConcurrentCallersShareNoValue runs many callers of several clients of
// several servers and checks uniqueness and, per client, order.
func TestConcurrentCallersShareNoValue(t *testing.T) {
	for _, inc := range []int64{1, -3} {
		t.Run(fmt.Sprint(inc), func(t *testing.T) {
			store := seqtest.NewMemory()
			var services []*sequence.Service
			for range 3 {
				services = append(services, sequence.NewService(store, sequence.ServiceOptions{}))
			}
			create(t, services[0], sequence.Spec{Name: "s", Increment: new(inc)})
			var mu sync.Mutex
			var all []int64
			var wg sync.WaitGroup
			for i := range 6 {
				c := sequence.NewClient(&roundRobin{services: services}, sequence.ClientOptions{})
				for range 2 {
					wg.Go(func() {
						var mine []int64
						for range 20_000 {
							v, err := c.Next(context.Background(), "s")
							if err != nil {
								t.Error(err)
								return
							}
							mine = append(mine, v*inc)
						}
						if !slices.IsSorted(mine) {
							t.Errorf("client %d: values out of order", i)
						}
						mu.Lock()
						all = append(all, mine...)
						mu.Unlock()
					})
				}
			}
			wg.Wait()
			slices.Sort(all)
			if n := len(slices.Compact(all)); n != 240_000 {
				t.Errorf("%d distinct values of 240000", n)
			}
		})
	}
}

// roundRobin leases from another service each time.
type roundRobin struct {
	services []*sequence.Service
	mu       sync.Mutex
	n        int
}

func (r *roundRobin) pick() *sequence.Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return r.services[r.n%len(r.services)]
}

func (r *roundRobin) Lease(ctx context.Context, req sequence.LeaseRequest) (sequence.LeaseResponse, error) {
	return r.pick().Lease(ctx, req)
}

func (r *roundRobin) Return(ctx context.Context, req sequence.ReturnRequest) error {
	return r.pick().Return(ctx, req)
}

func TestNextNReturnsAllOrNone(t *testing.T) {
	svc := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
	create(t, svc, sequence.Spec{Name: "s", Max: new(int64(100))})
	c := sequence.NewClient(svc, sequence.ClientOptions{})
	if v, err := c.NextN(t.Context(), "s", 90); err != nil || len(v) != 90 || v[0] != 1 || v[89] != 90 {
		t.Fatalf("NextN(90) = %v, %v", v, err)
	}
	if v, err := c.NextN(t.Context(), "s", 11); !errors.Is(err, sequence.ErrExhausted) || v != nil {
		t.Fatalf("NextN(11) = %v, %v; want exhausted", v, err)
	}
	for want := int64(91); want <= 100; want++ {
		if got := next(t, c, "s"); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
	if _, err := c.Next(t.Context(), "s"); !errors.Is(err, sequence.ErrExhausted) {
		t.Fatalf("after the last value: %v", err)
	}
}

func TestNextNLargerThanABlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
		create(t, svc, sequence.Spec{Name: "s"})
		c := sequence.NewClient(svc, sequence.ClientOptions{})
		next(t, c, "s")
		synctest.Wait()
		before := c.Stats().Leases
		v, err := c.NextN(t.Context(), "s", 200_000)
		if err != nil || v[0] != 2 || v[len(v)-1] != 200_001 {
			t.Errorf("NextN = %v.. , %v", v[:min(3, len(v))], err)
		}
		// One for these values, perhaps one more for the next caller.
		if n := c.Stats().Leases - before; n > 2 {
			t.Errorf("took %d leases", n)
		}
		c.Close(t.Context())
		svc.Close(t.Context())
	})
}

func TestCycleRepeatsInOrder(t *testing.T) {
	svc := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
	create(t, svc, sequence.Spec{Name: "s", Min: new(int64(-2)), Max: new(int64(5)), Start: new(int64(3)), Increment: new(int64(2)), Cycle: new(true)})
	c := sequence.NewClient(svc, sequence.ClientOptions{})
	var got []int64
	for range 10 {
		got = append(got, next(t, c, "s"))
	}
	if want := []int64{3, 5, -2, 0, 2, 4, -2, 0, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

var errRefused = &sequence.Error{Code: sequence.CodeUnavailable, Message: "connection refused"}

// flaky is a Leaser whose server can be away.
type flaky struct {
	sequence.Leaser
	mu   sync.Mutex
	away bool
	rtt  time.Duration
}

func (f *flaky) set(away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = away
}

func (f *flaky) Lease(ctx context.Context, req sequence.LeaseRequest) (sequence.LeaseResponse, error) {
	f.mu.Lock()
	away := f.away
	f.mu.Unlock()
	time.Sleep(f.rtt)
	if away {
		return sequence.LeaseResponse{}, errRefused
	}
	return f.Leaser.Lease(ctx, req)
}

func TestServerAwayIsServedFromTheCacheAndThenWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
		create(t, svc, sequence.Spec{Name: "s"})
		server := &flaky{Leaser: svc, rtt: 5 * time.Millisecond}
		c := sequence.NewClient(server, sequence.ClientOptions{})
		if err := c.Warm(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		server.set(true)
		cached := c.Stats().Cached
		for range cached {
			next(t, c, "s")
		}

		// The cache is used up: a caller waits for its deadline and learns why.
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.Next(ctx, "s")
		if !errors.Is(err, sequence.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errRefused) {
			t.Errorf("error %v", err)
		}
		if text := err.Error(); strings.Contains(text, "\n") || strings.Count(text, errRefused.Message) != 1 {
			t.Errorf("error %q, want one line that says the cause once", text)
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}

		// A caller goes on when the server is back.
		go func() {
			time.Sleep(10 * time.Second)
			server.set(false)
		}()
		start = time.Now()
		if v := next(t, c, "s"); v != cached+1 {
			t.Errorf("got %d, want %d", v, cached+1)
		}
		if waited := time.Since(start); waited > 13*time.Second {
			t.Errorf("waited %v", waited)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWarmReturnsWithTheFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
		create(t, svc, sequence.Spec{Name: "s"})
		create(t, svc, sequence.Spec{Name: "slow"})
		c := sequence.NewClient(&slow{svc}, sequence.ClientOptions{})
		go c.Warm(context.Background(), "slow")
		synctest.Wait() // its call is under way, so that no other goes with it
		start := time.Now()
		if err := c.Warm(t.Context(), "slow", "missing", "s"); !errors.Is(err, sequence.ErrNotFound) || time.Since(start) > 0 {
			t.Errorf("after %v: %v, want ErrNotFound at once", time.Since(start), err)
		}
		if err := c.Warm(t.Context(), "slow", "s"); err != nil || c.Stats().Cached < 2 {
			t.Errorf("warmed: %v, %d values cached", err, c.Stats().Cached)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		if err := c.Warm(ctx, "new"); !errors.Is(err, sequence.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with no time left: %v", err)
		}
		c.Close(t.Context())
		svc.Close(t.Context())
	})
}

// slow takes a second to lease the sequence "slow".
type slow struct{ sequence.Leaser }

func (s *slow) Lease(ctx context.Context, req sequence.LeaseRequest) (sequence.LeaseResponse, error) {
	if req.Items[0].Name == "slow" {
		time.Sleep(time.Second)
	}
	return s.Leaser.Lease(ctx, req)
}

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
		create(t, svc, sequence.Spec{Name: "s"})
		c := sequence.NewClient(&flaky{Leaser: svc, rtt: time.Second}, sequence.ClientOptions{})
		got := make([]int64, 200)
		for i := range got {
			go func() { got[i] = next(t, c, "s") }()
			synctest.Wait()
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for i, v := range got {
			if v != int64(i+1) {
				t.Fatalf("caller %d got %d", i, v)
			}
		}
		c.Close(t.Context())
	})
}

func TestCancelledCallerLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
		create(t, svc, sequence.Spec{Name: "s"})
		c := sequence.NewClient(&flaky{Leaser: svc, rtt: time.Second}, sequence.ClientOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.NextN(ctx, "s", 5); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if v := next(t, c, "s"); v != 1 {
			t.Errorf("got %d: the first caller's end took the refill with it", v)
		}
		c.Close(t.Context())
	})
}

func TestAlterDropsWhatWasCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := seqtest.NewMemory()
		a, b := sequence.NewService(store, sequence.ServiceOptions{}), sequence.NewService(store, sequence.ServiceOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.Run(ctx)
		create(t, b, sequence.Spec{Name: "s"})
		c := sequence.NewClient(a, sequence.ClientOptions{})
		next(t, c, "s")
		time.Sleep(time.Second)
		if _, err := b.Alter(t.Context(), sequence.AlterRequest{Spec: sequence.Spec{Name: "s", Increment: new(int64(10))}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		var last int64
		for range 200 {
			last = next(t, c, "s")
		}
		if step := next(t, c, "s") - last; step != 10 {
			t.Errorf("step %d after alter, want 10", step)
		}
		c.Close(t.Context())
		a.Close(t.Context())
		b.Close(t.Context())
		if n := a.Stats().Burned[sequence.BurnedAlter]; n == 0 {
			t.Error("no values counted as burned by the alter")
		}
	})
}
