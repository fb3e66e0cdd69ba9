package migdynamo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/internal/awsdynamo"
	"github.com/tallystick/tallystick/migrate"
)

func waits(delays []time.Duration, throttled bool) (all []time.Duration) {
	p := patience{delays: delays}
	for d, ok := p.next(throttled); ok; d, ok = p.next(throttled) {
		all = append(all, d)
	}
	return all
}

func TestPatienceIsThePlansAndLongerWithThrottling(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	plan := []time.Duration{100 * ms, 200 * ms, 500 * ms}
	for _, c := range []struct {
		delays    []time.Duration
		throttled bool
		want      []time.Duration
	}{
		{plan, false, plan},
		{plan, true, []time.Duration{100 * ms, 200 * ms, 500 * ms, s, 2 * s, 4 * s, 5 * s, 5 * s, 5 * s, 5 * s, 5 * s}},
		{nil, false, nil},
		{nil, true, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5 * s, 5 * s}},
	} {
		if diff := cmp.Diff(c.want, waits(c.delays, c.throttled)); diff != "" {
			t.Errorf("%v, throttled %t: %s", c.delays, c.throttled, diff)
		}
	}
}

func TestPatienceBeginsAnewWithProgress(t *testing.T) {
	p := patience{delays: []time.Duration{1}}
	for range 10 {
		if _, ok := p.next(false); !ok {
			t.Fatal("patience ended")
		}
		p.progress()
	}
}

func TestPatienceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		p := patience{delays: []time.Duration{time.Hour, time.Hour, time.Hour}}
		for p.wait(ctx, false) {
		}
		if ctx.Err() == nil || p.failures == 4 {
			t.Fatalf("it waited %d times", p.failures)
		}
	})
}

func TestLimiterHoldsToItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(100)
		l.setShare(0.1)
		begin := time.Now()
		for range 11 { // the first second's are free; one item is larger than that
			if err := l.wait(t.Context(), 20); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin).Round(time.Second); took != 21*time.Second {
			t.Errorf("220 units took %v, want 21s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.wait(ctx, 400); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("more than the context has time for: %v", err)
		}
	})
}

func TestWithoutALimitNothingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begin := newLimiter(0), time.Now()
		l.setShare(0.5)
		for range 1000 {
			l.wait(t.Context(), 400)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// late is the context of a process that was stopped beyond its deadline: the
// timer has not fired yet.
type late struct {
	context.Context
	deadline time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.deadline, true }
func (l late) Err() error                  { return nil }
func (l late) Done() <-chan struct{}       { return nil }

func TestTheDeadlineIsLookedAtWhenTheBodyLeaves(t *testing.T) {
	var came atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && len(body) == 4 {
			came.Add(1)
		}
	}))
	defer server.Close()
	var dialed time.Duration // how long the connection takes
	client := awsdynamo.LastLook{Over: over, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		<-time.After(dialed)
		return net.Dial(network, addr)
	}}}}
	for _, c := range []struct {
		name         string
		left, dialed time.Duration
		came         int64
	}{
		{"in time", time.Minute, 0, 1},
		{"over before it is sent", -time.Second, 0, 0},
		{"over while it waits for its connection", 20 * time.Millisecond, 40 * time.Millisecond, 0},
	} {
		came.Store(0)
		dialed = c.dialed
		req, err := http.NewRequestWithContext(late{t.Context(), time.Now().Add(c.left)}, "POST", server.URL, bytes.NewReader([]byte("body")))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if came.Load() != c.came || (err == nil) != (c.came == 1) {
			t.Errorf("%s: %d requests came, %v", c.name, came.Load(), err)
		}
	}
}

func TestRowsOfOnePartitionLieApart(t *testing.T) {
	var all []named
	for i := range 8 {
		all = append(all, named{i, "", "hot"})
	}
	for i := range 4 {
		all = append(all, named{8 + i, "", "warm"})
	}
	all = append(all, named{12, "", "cold"})
	want := []int{0, 8, 1, 2, 9, 3, 12, 4, 10, 5, 6, 11, 7}
	got := spread(all)
	partitions := ""
	for _, i := range got {
		partitions += all[i].partition[:1]
	}
	if partitions != "hwhhwhchwhhwh" {
		t.Errorf("order %v (%s), want like %v", got, partitions, want)
	}
}

func TestRowsOfOneItemAreInDifferentRounds(t *testing.T) {
	rows := []migrate.Row{{Key: migrate.Key{"a"}}, {Key: migrate.Key{"b"}}, {Key: migrate.Key{"a"}}, {Key: migrate.Key{"c"}}, {Key: migrate.Key{"a"}}}
	all := []named{{0, "x", "p"}, {1, "y", "q"}, {2, "x", "p"}, {3, "x", "p"}, {4, "x", "p"}}
	results := make([]migrate.Result, len(rows))
	if diff := cmp.Diff([][]int{{0, 1}, {2}, {4}}, arrange(all, rows, results)); diff != "" {
		t.Error(diff)
	}
	if results[3].Outcome != migrate.Refused || results[3].Reason != "item x is also that of row a" {
		t.Errorf("another row: %+v", results[3])
	}
}

func TestEachStopsAtTheFirstError(t *testing.T) {
	var calls atomic.Int64
	wrong := errors.New("wrong")
	err := each(t.Context(), 3, 1000, func(_ context.Context, i int) error {
		if calls.Add(1); i == 10 {
			return wrong
		}
		return nil
	})
	if err != wrong || calls.Load() > 20 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}
