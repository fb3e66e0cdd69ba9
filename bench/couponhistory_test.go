package bench

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/shard"
)

// TestFaultCouponHistory kills two servers in turn while callers do everything to
// coupons through both. What they saw has to be what calls one after the other
// could have shown, and the books have to balance.
func TestFaultCouponHistory(t *testing.T) {
	calls, every := 2_000, 700*time.Millisecond
	if full {
		calls, every = 22_000, 1500*time.Millisecond
	}
	c := mariadbCoupons(t, 2)
	campaign := c.campaign(t, int64(calls/8/32*32+640), 3)
	issue, err := c.clients[0].Issue(t.Context(), coupon.IssueRequest{Campaign: campaign.ID, Batch: "b", Order: "gifts", Count: min(500, int64(calls/50))})
	if err != nil {
		t.Fatal(err)
	}
	plan := coupontest.HistoryPlan{
		Campaign: campaign, Bearers: issue.Coupons, Users: coupontest.HistoryUsers(calls / 40),
		Calls: calls, Callers: 8, Timeouts: 16, Pause: 30 * time.Millisecond,
	}
	stop, stopped := make(chan struct{}), make(chan int)
	go func() { stopped <- c.disturb(every, stop) }()
	began := time.Now()
	h := coupontest.MakeHistory(t, plan, couponCalls{c.clients[0]}, couponCalls{c.clients[1]})
	close(stop)
	kills := <-stopped
	made, unknown := h.Len()
	took := time.Since(began)
	began = time.Now()
	got, why := h.Check(5 * time.Minute)
	t.Logf("%d calls in %v, of %d the outcome is not known, %d kills; checked in %v", made, took, unknown, kills, time.Since(began))
	if got != porcupine.Ok {
		t.Errorf("the history is %v:\n%s", got, why)
	}
	if kills == 0 || unknown == 0 {
		t.Error("nothing was disturbed")
	}
	c.sweep(t)
	c.audit(t, coupontest.Books{Campaign: campaign.ID, Users: plan.Users, Batches: []string{"b"}})
}

// sweep drives on at once what the dead have left.
func (c *coupons) sweep(t *testing.T) {
	s := coupon.NewService(c.direct.Store, c.direct.Control, coupon.Options{})
	defer s.Close()
	for _, at := range shard.All() {
		if err := s.Sweep(t.Context(), at, -time.Minute); err != nil {
			t.Error(err)
		}
	}
}

// audit fails the test where the books do not balance.
func (c *coupons) audit(t *testing.T, books coupontest.Books) {
	t.Helper()
	found, err := books.Audit(t.Context(), c.direct.Store, c.direct.Control)
	if err != nil {
		t.Error(err)
	}
	for _, problem := range found {
		t.Error(problem)
	}
}

// disturb kills one server and brings it back, again and again, until stop. It
// returns how often.
func (c *coupons) disturb(every time.Duration, stop <-chan struct{}) (kills int) {
	for {
		select {
		case <-stop:
			return kills
		case <-time.After(every/2 + rand.N(every)):
		}
		victim := c.servers[kills%len(c.servers)]
		victim.Kill()
		<-time.After(rand.N(every / 4))
		victim.Start()
		kills++
	}
}
