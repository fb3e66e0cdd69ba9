package sequence_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// TestFaultStoreOutageIsNotNoticed cuts the store off for 30 s in the moment a
// server wants to refill the hot sequence, five times: one hot sequence at
// 1,000/s over 10 clients, 100 cold ones at 1/s. Nobody may see an error or
// wait longer than 50 ms. Time is fake, so nothing of it depends on the
// machine; the round trip to a server takes 5 ms.
func TestFaultStoreOutageIsNotNoticed(t *testing.T) {
	t.Run("refused", func(t *testing.T) { outages(t, 0) })
	t.Run("silent", func(t *testing.T) { outages(t, time.Hour) })
}

func outages(t *testing.T, silence time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		var outage outage
		outage.fault = seqtest.Fault{Delay: silence, Refuse: sequence.ErrUnavailable}
		store := seqtest.NewFaulty(seqtest.NewMemory())
		store.Plan(outage.plan)
		svc := newService(t, store)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { svc.Run(ctx) })
		names := []string{"hot"}
		for i := range 100 {
			names = append(names, fmt.Sprintf("cold_%d", i))
		}
		for _, name := range names {
			create(t, svc, sequence.Spec{Name: name})
		}

		var longest atomic.Int64
		var values atomic.Int64
		call := func(c *sequence.Client, name string, every time.Duration) {
			defer running.Done()
			for ctx.Err() == nil {
				start := time.Now()
				if _, err := c.Next(context.Background(), name); err != nil {
					t.Errorf("%v: %s: %v", outage.count(), name, err)
					return
				}
				values.Add(1)
				if waited := time.Since(start); int64(waited) > longest.Load() {
					longest.Store(int64(waited))
				}
				time.Sleep(every)
			}
		}
		clients := make([]*sequence.Client, 10)
		for i := range clients {
			clients[i] = sequence.NewClient(&flaky{Leaser: svc, rtt: 5 * time.Millisecond}, sequence.ClientOptions{})
			if err := clients[i].Warm(ctx, "hot"); err != nil {
				t.Fatal(err)
			}
			running.Add(1)
			go call(clients[i], "hot", 10*time.Millisecond)
		}
		for i, name := range names[1:] {
			running.Add(1)
			go call(clients[i%10], name, time.Second)
		}
		for i := range 5 {
			time.Sleep(2 * time.Minute) // the window fills, the cache recovers
			outage.arm()
			for waited := 0; outage.count() == i && waited < 20; waited++ {
				time.Sleep(time.Minute)
			}
			if got := outage.count(); got != i+1 {
				t.Errorf("%d outages began, want %d", got, i+1)
			}
			time.Sleep(time.Minute)
		}
		stop()
		running.Wait()
		t.Logf("%d values, 5 outages of 30 s, longest wait %v", values.Load(), time.Duration(longest.Load()))
		if w := time.Duration(longest.Load()); w > 50*time.Millisecond {
			t.Errorf("somebody waited %v", w)
		}
		for _, c := range clients {
			c.Close(context.Background())
		}
	})
}

// An outage is a plan that lets everything through until it is armed; then it
// begins with the next block of the hot sequence and lasts 30 s.
type outage struct {
	fault seqtest.Fault

	mu    sync.Mutex
	armed bool
	began int
	until time.Time
}

func (o *outage) plan(c seqtest.Call) seqtest.Fault {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.armed && c.Op == seqtest.OpAdvance && c.Name == "hot" {
		o.armed = false
		o.began++
		o.until = time.Now().Add(30 * time.Second)
	}
	if time.Now().Before(o.until) {
		f := o.fault
		f.Delay = min(f.Delay, time.Until(o.until))
		return f
	}
	return seqtest.Fault{}
}

func (o *outage) arm() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.armed = true
}

func (o *outage) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.began
}
