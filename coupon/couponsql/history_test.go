package couponsql_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/coupon/coupontest"
)

func platformOf(p *couponsql.Platform) coupontest.Platform {
	return coupontest.Platform{Store: p.Store, Control: p.Control}
}

func TestRacesOnMariaDB(t *testing.T) {
	o := mariadb(t).options(2)
	coupontest.TestRaces(t, [2]coupontest.Platform{platformOf(open(t, o)), platformOf(open(t, o))})
}

func TestLivesOnSQLite(t *testing.T) {
	coupontest.TestLives(t, platformOf(open(t, sqlite(t).options(2))))
}

// plan is of a small history, in a world of its own.
func plan(t *testing.T, w *coupontest.World) coupontest.HistoryPlan {
	c := w.Campaign(t, 24*32, func(c *coupon.Campaign) { c.PerUserLimit = 3 })
	issue, err := w.Issue(t.Context(), coupon.IssueRequest{Campaign: c.ID, Batch: "b", Order: "gifts", Count: 60})
	if err != nil {
		t.Fatal(err)
	}
	p := coupontest.HistoryPlan{Campaign: c, Bearers: issue.Coupons, Users: coupontest.HistoryUsers(40), Calls: 2_000, Callers: 8, Timeouts: 12, Pause: 5 * time.Millisecond}
	if os.Getenv("TALLYSTICK_FULL") == "1" {
		p.Calls = 10_000
	}
	return p
}

// TestFaultHistories makes histories through two services, whose calls time out
// now and then.
func TestFaultHistories(t *testing.T) {
	for name, k := range map[string]kind{"SQLite": sqlite(t), "MariaDB": mariadb(t)} {
		t.Run(name, func(t *testing.T) {
			o := k.options(2)
			p := open(t, o)
			q := p
			if name != "SQLite" {
				q = open(t, o)
			}
			w := coupontest.NewWorld(t, p.Store, p.Control, nil, nil)
			v := coupontest.NewWorld(t, q.Store, q.Control, p.Control, nil)
			h := coupontest.MakeHistory(t, plan(t, w), coupontest.Local{Service: w.Service}, coupontest.Local{Service: v.Service})
			calls, unknown := h.Len()
			t.Logf("%d calls, of %d the outcome is not known", calls, unknown)
			if got, why := h.Check(time.Minute); got != porcupine.Ok {
				t.Errorf("the history is %v:\n%s", got, why)
			}
			if unknown == 0 {
				t.Error("no call timed out")
			}
		})
	}
}

// TestHistoriesShowFaults lets a store misbehave: the checker is to find it.
func TestHistoriesShowFaults(t *testing.T) {
	p, numbers := open(t, sqlite(t).options(2)), new(counting)
	for _, fault := range coupontest.Faults {
		t.Run(fault, func(t *testing.T) {
			w := coupontest.NewWorld(t, &coupontest.Faulty{Store: p.Store, Fault: fault}, p.Control, p.Control, numbers)
			h := coupontest.MakeHistory(t, plan(t, w), coupontest.Local{Service: w.Service})
			if got, _ := h.Check(time.Minute); got != porcupine.Illegal {
				t.Errorf("the history is %v", got)
			}
		})
	}
}

// counting gives numbers to several services.
type counting struct{ last atomic.Int64 }

func (c *counting) Next(context.Context, string) (int64, error) { return c.last.Add(1), nil }
