package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
)

// insist makes a call until it is answered with something that stays.
func insist(t *testing.T, do func(context.Context) (coupon.Result, error)) (coupon.Result, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		r, err := do(ctx)
		if refused, ok := errors.AsType[*coupon.Refusal](err); !ok || !refused.Retryable || ctx.Err() != nil {
			return r, err
		}
	}
}

// TestFaultRedeemedOnce has 100 orders redeem one coupon at the same time through
// all servers, and one order 100 times.
func TestFaultRedeemedOnce(t *testing.T) {
	count := 10
	if full {
		count = 200
	}
	for name, start := range map[string]func(*testing.T) *coupons{
		"SQLite":  embeddedCoupons,
		"MariaDB": func(t *testing.T) *coupons { return mariadbCoupons(t, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			campaign := c.campaign(t, int64(64*count), 2*count)
			for i := range count {
				once, again := c.claim(t, campaign.ID, fmt.Sprint(i)), c.claim(t, campaign.ID, fmt.Sprint(i, "-again"))
				won := c.redeem(t, once, func(i int) string { return fmt.Sprint("order-", i) })
				if won[""] != 1 || won["ALREADY_REDEEMED"] != 99 {
					t.Errorf("coupon %d for 100 orders: %v", once, won)
				}
				if won := c.redeem(t, again, func(int) string { return "order" }); won[""] != 100 {
					t.Errorf("coupon %d 100 times for an order: %v", again, won)
				}
				for _, id := range []coupon.ID{once, again} {
					events, err := c.clients[0].History(t.Context(), id)
					if err != nil || len(events) != 3 || events[2].Type != coupon.WasRedeemed {
						t.Errorf("history of %d: %+v, %v", id, events, err)
					}
				}
			}
		})
	}
}

func (c *coupons) claim(t *testing.T, campaign int64, request string) coupon.ID {
	t.Helper()
	r, err := insist(t, func(ctx context.Context) (coupon.Result, error) {
		return c.clients[0].Claim(ctx, campaign, coupon.Call{User: "ann", Request: request})
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Coupon.ID
}

// redeem redeems a coupon 100 times at once, and counts the codes of refusals; ""
// is success.
func (c *coupons) redeem(t *testing.T, id coupon.ID, order func(int) string) map[string]int {
	var mu sync.Mutex
	codes := make(map[string]int)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			_, err := insist(t, func(ctx context.Context) (coupon.Result, error) {
				return c.clients[i%len(c.clients)].Redeem(ctx, ref(id), coupon.Call{User: "ann", Order: order(i)})
			})
			code := ""
			if refused, ok := errors.AsType[*coupon.Refusal](err); ok {
				code = refused.Code
			} else if err != nil {
				code = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			codes[code]++
		})
	}
	all.Wait()
	return codes
}

// TestFaultClaimedToTheLast has ten times as many users as coupons, through two
// servers.
func TestFaultClaimedToTheLast(t *testing.T) {
	total := 100
	if full {
		total = 1_000
	}
	c := mariadbCoupons(t, 2)
	campaign := c.campaign(t, int64(total), 1)
	var g given
	slots := make(chan struct{}, 64)
	books := coupontest.Books{Campaign: campaign.ID}
	var all sync.WaitGroup
	for i := range 10 * total {
		user := fmt.Sprint("user-", i)
		books.Users = append(books.Users, user)
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			g.claim(t, c, campaign.ID, user, i)
		})
	}
	all.Wait()
	if len(g.to) != total {
		t.Errorf("%d of %d coupons were claimed", len(g.to), total)
	}
	if g.none.Before(g.last) {
		t.Errorf("none left was said %v before the last success began", g.last.Sub(g.none))
	}
	c.audit(t, books)
}

// given is what claims came to.
type given struct {
	mu         sync.Mutex
	to         map[coupon.ID]string
	last, none time.Time // when the last success began, and the first "none left" was said
}

// claim claims for a user. Only the begin of the call that succeeded counts.
func (g *given) claim(t *testing.T, c *coupons, campaign int64, user string, i int) {
	var began time.Time
	r, err := insist(t, func(ctx context.Context) (coupon.Result, error) {
		began = time.Now()
		return c.clients[i%len(c.clients)].Claim(ctx, campaign, coupon.Call{User: user, Request: "r1"})
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.to == nil {
		g.to = make(map[coupon.ID]string)
	}
	switch {
	case err == nil && g.to[r.Coupon.ID] != "":
		t.Errorf("coupon %d went to %s and %s", r.Coupon.ID, g.to[r.Coupon.ID], user)
	case err == nil:
		g.to[r.Coupon.ID] = user
		if began.After(g.last) {
			g.last = began
		}
	case !errors.Is(err, coupon.ErrPoolExhausted):
		t.Errorf("%s: %v", user, err)
	case g.none.IsZero():
		g.none = time.Now()
	}
}
