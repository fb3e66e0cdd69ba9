package couponsql_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/shard"
)

// What the benchmarks do at a time and for how long.
const (
	callers   = 16
	perCaller = 128 // coupons
	roundTime = 150 * time.Millisecond
	warmUp    = 8 // rounds of each
)

// BenchmarkRedeem compares a redemption, which reads a coupon and changes it, with
// the same statements written by hand and with no more than one UPDATE and one
// INSERT, each in a transaction. A loop is a round of all three, one after the
// other; the ratios are medians of those of a round.
func BenchmarkRedeem(b *testing.B) {
	bench := newBench(b)
	bench.compare(b, bench.redeem, bench.redeemByHand, bench.updateAndInsert)
}

// BenchmarkClaim compares a claim on the user's own shard, which reads the user's
// claims and writes claim, coupon, ledger, event and wallet, likewise.
func BenchmarkClaim(b *testing.B) {
	bench := newBench(b)
	bench.compare(b, bench.claim, bench.claimByHand, bench.updateAndInsert)
}

// An act does something to a coupon and reports it with the next version.
type act func(ctx context.Context, c coupon.Coupon, n int64) (coupon.Coupon, error)

func (n *bench) compare(b *testing.B, ours, byHand, least act) {
	var ofHand, ofLeast []float64
	var sum [3]round
	acts := []act{ours, byHand, least}
	for i := range 3 * warmUp { // connections and tables are opened
		n.round(b, acts[i%3])
	}
	for b.Loop() {
		var r [3]round
		for i, fn := range acts {
			r[i] = n.round(b, fn)
			sum[i].n, sum[i].took, sum[i].cpu = sum[i].n+r[i].n, sum[i].took+r[i].took, sum[i].cpu+r[i].cpu
		}
		ofHand, ofLeast = append(ofHand, 100*r[0].rate()/r[1].rate()), append(ofLeast, 100*r[0].rate()/r[2].rate())
	}
	b.ReportMetric(sum[0].rate(), "/s")
	b.ReportMetric(median(ofHand), "%by-hand")
	b.ReportMetric(median(ofLeast), "%update+insert")
	// What one costs is the same on a busy machine, which the rates are not.
	b.ReportMetric(sum[0].cost(), "cpu-us/op")
	b.ReportMetric(100*sum[1].cost()/sum[0].cost(), "%by-hand-cpu")
	b.ReportMetric(100*sum[2].cost()/sum[0].cost(), "%update+insert-cpu")
	b.ReportMetric(0, "ns/op")
}

// A round is what was done in it.
type round struct {
	n    int64
	took time.Duration
	cpu  time.Duration // of this process and the server
}

func (r round) rate() float64 { return float64(r.n) / r.took.Seconds() }
func (r round) cost() float64 { return float64(r.cpu.Microseconds()) / float64(r.n) }

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// A bench is a platform with coupons, and a way to its databases around it.
type bench struct {
	server   int // its pid
	store    *couponsql.Store
	cluster  *shard.Cluster
	raw      map[string]*sql.DB
	coupons  [callers][]coupon.Coupon
	campaign atomic.Int64 // a claim each
	orders   atomic.Int64
}

func newBench(b *testing.B) *bench {
	k := mariadb(b, "innodb-flush-log-at-trx-commit=1", "innodb-buffer-pool-size=512M", "innodb-log-file-size=256M")
	o := k.options(8)
	p := open(b, o)
	n := &bench{server: k.pid, store: p.Store, cluster: p.Cluster, raw: map[string]*sql.DB{}}
	for _, s := range o.Shards {
		db, err := sql.Open("mysql", s.At+"?interpolateParams=true&clientFoundRows=true&parseTime=true&tx_isolation='READ-COMMITTED'")
		if err != nil {
			b.Fatal(err)
		}
		db.SetMaxIdleConns(callers)
		b.Cleanup(func() { db.Close() })
		n.raw[s.Name] = db
	}
	n.fill(b)
	return n
}

// fill adds issued coupons, some on every shard for every caller.
func (n *bench) fill(b *testing.B) {
	key, err := coupon.NewCheckKey("bench", time.Unix(1, 0), make([]byte, 32))
	if err != nil {
		b.Fatal(err)
	}
	codes, err := coupon.NewCodes(key)
	if err != nil {
		b.Fatal(err)
	}
	for s := range shard.Shard(shard.Count) {
		var all []coupon.Coupon
		for i := range callers * perCaller / shard.Count {
			all = append(all, coupon.Coupon{
				ID: coupon.ID(int64(i+1)<<10 + int64(s)), Code: codes.New(s), Campaign: 1, Kind: coupon.FixedAmount,
				Value: coupon.Amount{Minor: 500, Currency: "EUR"}, VoidPolicy: coupon.VoidPolicy{Kind: coupon.Restore},
				Status: coupon.Issued, Version: 1, Created: time.UnixMilli(1e12), Updated: time.UnixMilli(1e12),
				Valid: coupon.Window{Until: time.UnixMilli(2e12)}, User: userOn(s), IssuedAt: time.UnixMilli(1e12),
			})
		}
		if err := n.store.Write(b.Context(), s, func(tx coupon.Tx) error { return tx.Add(all) }); err != nil {
			b.Fatal(err)
		}
		for i, c := range all {
			n.coupons[(i+int(s))%callers] = append(n.coupons[(i+int(s))%callers], c)
		}
	}
}

func userOn(s shard.Shard) string {
	for i := 0; ; i++ {
		if user := fmt.Sprintf("user-%d-%d", s, i); shard.Text(user).Bucket().Shard() == s {
			return user
		}
	}
}

// round has all callers act for a while, each on its own coupons.
func (n *bench) round(b *testing.B, fn act) round {
	var done atomic.Int64
	var all sync.WaitGroup
	cpu, begin := n.cpu(), time.Now()
	for caller := range callers {
		all.Go(func() {
			mine := n.coupons[caller]
			for i := 0; time.Since(begin) < roundTime; i++ {
				c := &mine[i%len(mine)]
				next, err := fn(b.Context(), *c, n.orders.Add(1))
				if err != nil {
					b.Error(err)
					return
				}
				*c = next
				done.Add(1)
			}
		})
	}
	all.Wait()
	return round{done.Load(), time.Since(begin), n.cpu() - cpu}
}

// cpu returns what this process and the server have used, as Linux tells.
func (n *bench) cpu() (used time.Duration) {
	for _, pid := range []string{"self", strconv.Itoa(n.server)} {
		stat, _ := os.ReadFile("/proc/" + pid + "/stat")
		if fields := strings.Fields(string(stat)); len(fields) > 14 {
			user, _ := strconv.ParseInt(fields[13], 10, 64)
			system, _ := strconv.ParseInt(fields[14], 10, 64)
			used += time.Duration(user+system) * 10 * time.Millisecond
		}
	}
	return used
}

// step returns a coupon redeemed by an order, and how that came.
func step(c coupon.Coupon, n int64, now time.Time) (coupon.Coupon, coupon.Event) {
	c.Version++
	c.Status, c.RedeemedOrder, c.RedeemedAt, c.Updated = coupon.Redeemed, fmt.Sprint("order-", n), now, now
	return c, coupon.Event{
		Coupon: c.ID, Version: c.Version, Type: coupon.WasRedeemed, At: now, Actor: "shop", User: c.User, Order: c.RedeemedOrder,
	}
}

func (n *bench) redeem(ctx context.Context, c coupon.Coupon, order int64) (next coupon.Coupon, err error) {
	err = n.store.Write(ctx, c.ID, func(tx coupon.Tx) error {
		now, err := tx.Coupon(c.ID)
		if err != nil {
			return err
		}
		var e coupon.Event
		next, e = step(now, order, tx.Now())
		return tx.Change(next, e)
	})
	return next, err
}

func (n *bench) claim(ctx context.Context, c coupon.Coupon, order int64) (next coupon.Coupon, err error) {
	campaign := n.campaign.Add(1)
	err = n.store.Write(ctx, shard.Text(c.User), func(tx coupon.Tx) error {
		if _, err := tx.Claims(c.User, campaign); err != nil {
			return err
		}
		claim := coupon.Claim{User: c.User, Campaign: campaign, Request: "request", Number: 1, Coupon: c.ID, Done: true, At: tx.Now()}
		if err := tx.PutClaim(claim); err != nil {
			return err
		}
		var e coupon.Event
		next, e = step(c, order, tx.Now())
		if err := tx.Change(next, e); err != nil {
			return err
		}
		return tx.Keep(next)
	})
	return next, err
}
