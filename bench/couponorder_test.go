package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// An orderWorld is one order for a whole campaign, while coupons of others are
// redeemed.
type orderWorld struct {
	*couponWorld
	coupons int64
	rate    int // redemptions a second
	order   string
}

// couponOrder issues one large order and looks at what that does to the shards and
// to the redemptions of other campaigns; and does the same with coupons that are
// kept where their order is.
func couponOrder(t *testing.T, r *results) {
	w := &orderWorld{coupons: 16_000, rate: 50, order: "large"}
	quiet, claims := time.Second, 800
	if full {
		w.coupons, w.rate = 1_000_000, 100
		quiet, claims = time.Minute, 80_000
	}
	longest := new(longestWrite)
	w.couponWorld = newCouponWorld(t, longest.watch)
	w.claimAll(t, claims)
	w.redeemDuring(t, func() { <-time.After(quiet / 4) }) // opens what is opened once
	before := w.redeemDuring(t, func() { <-time.After(quiet) })
	var c coupon.Campaign
	generating := w.redeemDuring(t, func() { c = w.stock(t, w.coupons) })
	longest.reset()
	log := w.newBinlog(t)
	var took time.Duration
	during := w.redeemDuring(t, func() { took = w.issue(t, c.ID) })
	write := longest.get()
	changed := w.transactionsSince(t, log)
	byHand := w.redeemDuring(t, func() { w.issueByHand(t) })

	rows := w.rowsByShard(t)
	w.checkRows(t, rows, changed)
	r.section("Coupons: one large order", fmt.Sprintf("One MariaDB with durable commits, 8 databases of 4 shards. An order of %d coupons is issued from the stock of one campaign, in %.0f s, while %d coupons of another one are redeemed a second, each when it is due, whatever those before take. Beside it as many rows are written by hand, at full speed, to the one shard that the order's number chooses. All databases share one server's processors, disk and log.", w.coupons, took.Seconds(), w.rate))
	r.table("redemptions", "calls", "p99, ms", "p99 on the database of the order's shard, ms")
	home := int(shard.Text(w.order).Bucket().Shard()) / shardsPerDatabase
	for _, row := range []struct {
		name string
		l    *latencies
	}{{"before", before}, {"while the stock is generated", generating}, {"during the order", during}, {"during the order by hand", byHand}} {
		r.row(row.name, len(row.l.all()), row.l.p99(), quantile(row.l.by[home], 0.99))
	}
	ratio, longestMs := during.p99()/before.p99(), float64(write.Milliseconds())
	r.table("figure", "measured", "bar")
	r.row("p99 of redemptions during the order over that before", ratio, "2")
	r.row("by how much the fullest shard exceeds the emptiest, %", 100*excess(rows), "1")
	r.row("most rows that one transaction changed", changed.most, "500")
	r.row("longest transaction, ms", longestMs, "500")
	r.row("rows of the order in the fullest shard", slices.Max(rows), "")
	r.row("the same by hand", w.coupons, "")
	r.atMost(t, "p99 during the order over that before", ratio, 2)
	r.atMost(t, "longest transaction, ms", longestMs, 500)
}

// checkRows fails the test unless all coupons are there, spread evenly and changed
// by transactions of bounded size.
func (w *orderWorld) checkRows(t *testing.T, rows []int64, changed logged) {
	t.Helper()
	var sum int64
	for _, n := range rows {
		sum += n
	}
	if sum != w.coupons || changed.issued != w.coupons {
		t.Errorf("%d coupons are the order's and %d were changed by its transactions, want %d", sum, changed.issued, w.coupons)
	}
	if got := excess(rows); got > 0.01 {
		t.Errorf("rows per shard differ by %.2g, want 0.01 at most: %v", got, rows)
	}
	if changed.most > 500 {
		t.Errorf("a transaction changed %d rows, want 500 at most", changed.most)
	}
}

// excess returns by how much the largest exceeds the smallest, as a part of that.
func excess(rows []int64) float64 {
	least := slices.Min(rows)
	return float64(slices.Max(rows)-least) / float64(max(least, 1))
}

// stock makes a campaign with all its coupons.
func (w *orderWorld) stock(t *testing.T, total int64) coupon.Campaign {
	t.Helper()
	c, err := w.CreateCampaign(t.Context(), coupon.Campaign{
		Name: "bench", Total: total, TimeZone: "UTC", ValidDays: 30, Value: coupon.Amount{Minor: 500, Currency: "EUR"},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	op, err := w.Generate(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	w.await(t, op)
	return c
}

// await returns when all of an operation is done.
func (w *orderWorld) await(t *testing.T, op coupon.Operation) {
	t.Helper()
	for !op.Done {
		time.Sleep(50 * time.Millisecond)
		var err error
		if op, err = w.Operation(t.Context(), op.ID); err != nil {
			t.Fatal(err)
		}
	}
	if op.Succeeded != op.Total {
		t.Fatalf("%+v", op)
	}
}

// issue issues the order and returns how long that took.
func (w *orderWorld) issue(t *testing.T, campaign int64) time.Duration {
	t.Helper()
	start := time.Now()
	got, err := w.Issue(t.Context(), coupon.IssueRequest{Campaign: campaign, Batch: "b", Order: w.order, Count: w.coupons})
	if err != nil {
		t.Fatal(err)
	}
	w.await(t, *got.Operation)
	return time.Since(start)
}

// claimAll claims coupons of another campaign, each for a user of its own.
func (w *orderWorld) claimAll(t *testing.T, n int) {
	t.Helper()
	c := w.stock(t, int64(n))
	var callers sync.WaitGroup
	for range couponCallers {
		callers.Go(func() {
			for range n / couponCallers {
				if err := tryAgain(func() error { return w.claim(t.Context(), c.ID) }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	// Claimed in the order of their shards they would be redeemed so, too.
	slices.SortFunc(w.claimed, func(a, b coupon.Coupon) int { return cmp.Compare(a.Code.Symbols(), b.Code.Symbols()) })
}

// tryAgain does again what it is told to try again.
func tryAgain(do func() error) error {
	for {
		err := do()
		if refused, ok := errors.AsType[*coupon.Refusal](err); !ok || !refused.Retryable {
			return err
		}
	}
}

// redeemDuring redeems coupons while something is done.
func (w *orderWorld) redeemDuring(t *testing.T, do func()) *latencies {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := new(latencies)
	var redeeming sync.WaitGroup
	redeeming.Go(func() { w.redeemSteadily(ctx, t, l) })
	defer redeeming.Wait()
	defer stop()
	do()
	return l
}
