package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
)

// shardsPerDatabase is how many shards a database of a couponWorld has; they are
// there in their order.
const shardsPerDatabase = 4

// latencies are how long redemptions took, in ms, by the database of the coupon.
type latencies struct {
	mu sync.Mutex
	by [8][]float64
}

func (l *latencies) all() []float64 { return slices.Concat(l.by[:]...) }

func (l *latencies) p99() float64 { return quantile(l.all(), 0.99) }

func (l *latencies) add(id coupon.ID, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := int(id.Shard()) / shardsPerDatabase
	l.by[at] = append(l.by[at], float64(took.Microseconds())/1000)
}

// redeemSteadily redeems w.rate coupons a second until ctx ends. Each has a time at
// which it is due, from which its latency counts: what is held up holds nothing
// else up and is not left out.
func (w *orderWorld) redeemSteadily(ctx context.Context, t *testing.T, l *latencies) {
	period := time.Second / time.Duration(w.rate)
	var calls sync.WaitGroup
	defer calls.Wait()
	for due := time.Now(); ; due = due.Add(period) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		c, err := w.last()
		if err != nil {
			if full { // the small run may be on a machine that is that slow
				t.Error(err)
			}
			return
		}
		calls.Go(func() {
			err := tryAgain(func() error {
				_, err := w.Redeem(t.Context(), coupon.Target{ID: c.ID}, coupon.Call{User: c.User, Order: fmt.Sprint("order-", c.ID)})
				return err
			})
			if err != nil {
				t.Error(err)
			}
			l.add(c.ID, time.Since(due))
		})
	}
}
