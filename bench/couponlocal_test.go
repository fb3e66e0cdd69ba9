package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// tenths are the parts of a campaign, by when they were claimed.
const tenths = 10

// A localWorld is services that share a store, each with what it keeps of the pool
// for itself.
type localWorld struct {
	services [2]*coupontest.World
	campaign int64
	total    int64

	begun, ended atomic.Int64
	local        [tenths]atomic.Int64
	tries        atomic.Int64
}

// couponLocal claims a whole campaign and counts how many claims were one
// transaction: those whose coupon is on the user's own shard.
func couponLocal(t *testing.T, r *results) {
	w := &localWorld{total: 3_000}
	if full {
		w.total = 100_000
	}
	w.open(t)
	var callers sync.WaitGroup
	for i := range couponCallers {
		callers.Go(func() { w.claimUntilGone(t, w.services[i%len(w.services)]) })
	}
	callers.Wait()
	if got := w.ended.Load(); got != w.total {
		t.Fatalf("%d of %d coupons were claimed", got, w.total)
	}
	r.section("Coupons: claims within one shard", fmt.Sprintf("A campaign of %d coupons on MariaDB is claimed, each by a user of its own, by %d callers of two services that share the store. A claim is local if its coupon is on the user's shard: then it is one transaction. %d claims were told to try again.", w.total, couponCallers, w.tries.Load()-w.total))
	r.table("tenth of the campaign", "local claims, %")
	var local int64
	for i := range w.local {
		n := w.local[i].Load()
		r.row(i+1, 100*float64(n)/float64(w.total/tenths))
		if i < tenths-1 {
			local += n
		}
	}
	share := float64(local) / float64(w.total/tenths*(tenths-1))
	r.text("Until nine tenths are gone %.2f %% are local (bar: 95).", 100*share)
	if share < 0.95 {
		t.Errorf("%.4f of the claims were local until nine tenths were gone, want 0.95 at least", share)
	}
}

// open opens the databases, the services and the campaign.
func (w *localWorld) open(t *testing.T) {
	t.Helper()
	o := couponsql.Options{Control: couponsql.Source{Name: "control", At: realtest.MariaDBDSN(t)}, EnsureFence: shardsql.EnsureFence, Fenced: shardsql.Fenced}
	for i := range 8 {
		o.Shards = append(o.Shards, couponsql.Source{Name: fmt.Sprint("shard", i), At: realtest.MariaDBDSN(t)})
	}
	o.Open = func(ctx context.Context, at string) (couponsql.Database, error) {
		return shardsql.OpenMySQL(ctx, shardsql.MySQLOptions{DSN: at})
	}
	p, err := couponsql.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	workers, numbers := new(coupontest.Workers), new(oneByOne)
	for i := range w.services {
		w.services[i] = coupontest.NewWorld(t, p.Store, p.Control, workers, numbers)
	}
	w.campaign = w.services[0].Campaign(t, w.total, nil).ID
}

// oneByOne gives numbers from 1 on, whatever the sequence.
type oneByOne struct{ last atomic.Int64 }

func (o *oneByOne) Next(context.Context, string) (int64, error) { return o.last.Add(1), nil }

// claimUntilGone claims for users nobody had before, as long as there are coupons.
func (w *localWorld) claimUntilGone(t *testing.T, s *coupontest.World) {
	for {
		i := w.begun.Add(1)
		if i > w.total {
			return
		}
		user := fmt.Sprint("user-", i)
		got, err := w.claim(t.Context(), s, user)
		if err != nil {
			t.Error(err)
			return
		}
		if tenth := (w.ended.Add(1) - 1) * tenths / w.total; shard.Same(got.Coupon.ID, shard.Text(user)) {
			w.local[tenth].Add(1)
		}
	}
}

// claim claims for a user, again while that is worth it.
func (w *localWorld) claim(ctx context.Context, s *coupontest.World, user string) (got coupon.Result, err error) {
	err = tryAgain(func() error {
		w.tries.Add(1)
		got, err = s.Claim(ctx, w.campaign, coupon.Call{User: user, Request: "r"})
		return err
	})
	return got, err
}
