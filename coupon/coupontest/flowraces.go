package coupontest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
)

func oneOfManyRedeems(t *testing.T, w *World) {
	ann, _ := users(t)
	c := w.Campaign(t, 32, func(c *coupon.Campaign) { c.PerUserLimit = 10 })
	for round := range 5 {
		id := must(w.claim(t.Context(), c.ID, ann, fmt.Sprint("r", round)))(t).Coupon.ID
		var won, lost, odd atomic.Int64
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				for {
					_, err := w.Redeem(t.Context(), coupon.Target{ID: id}, call(ann, fmt.Sprint("o", i), ""))
					switch {
					case err == nil:
						won.Add(1)
					case errors.Is(err, coupon.ErrAlreadyRedeemed):
						lost.Add(1)
					case errors.Is(err, coupon.ErrShardUnavailable), errors.Is(err, coupon.ErrInProgress):
						continue
					default:
						odd.Add(1)
						t.Error(err)
					}
					return
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || lost.Load() != 49 {
			t.Errorf("%d won, %d lost", won.Load(), lost.Load())
		}
		history(t, w, id, coupon.WasGenerated, coupon.WasClaimed, coupon.WasRedeemed)
	}
}

// claimsToTheLast has more users than coupons, through two processes: every
// coupon goes to one user, and nobody is told that there are none before the last
// one was given.
func claimsToTheLast(t *testing.T, worlds [2]*World) {
	const coupons, users = 200, 600
	c := worlds[0].Campaign(t, coupons, nil)
	var mu sync.Mutex
	given := map[coupon.ID]string{}
	var last, exhausted time.Time // when the last success began, and the first "none left" ended
	var all sync.WaitGroup
	room := make(chan struct{}, 32)
	for i := range users {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			user, began := fmt.Sprint("user-", i), time.Now()
			r, err := worlds[i%2].claim(ctx, c.ID, user, "r1")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && given[r.Coupon.ID] != "":
				t.Errorf("coupon %d went to %s and %s", r.Coupon.ID, given[r.Coupon.ID], user)
			case err == nil:
				given[r.Coupon.ID] = user
				if began.After(last) {
					last = began
				}
			case !errors.Is(err, coupon.ErrPoolExhausted):
				t.Errorf("%s: %v", user, err)
			case exhausted.IsZero():
				exhausted = time.Now()
			}
		})
	}
	all.Wait()
	if len(given) != coupons {
		t.Errorf("%d of %d coupons were given", len(given), coupons)
	}
	if exhausted.Before(last) {
		t.Errorf("none left was said %v before the last success began", last.Sub(exhausted))
	}
}
