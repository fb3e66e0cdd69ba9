package coupontest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// A Hooked store tells when a flow is about to write, so that a test can have
// another process do something there.
type Hooked struct {
	coupon.Store
	BeforeWrite func(key shard.Key) // nil: nobody is told
}

// Write runs fn in a transaction of the store.
func (h *Hooked) Write(ctx context.Context, key shard.Key, fn func(coupon.Tx) error) error {
	if h.BeforeWrite != nil {
		h.BeforeWrite(key)
	}
	return h.Store.Write(ctx, key, fn)
}

// TestRaces checks what two processes come to that do the same at the same time.
func TestRaces(t *testing.T, processes [2]Platform) {
	r := races{processes, new(Workers), new(counting)}
	t.Run("OneClaimDrivenTwice", r.oneClaimDrivenTwice)
	t.Run("OneBatchIssuedTwice", r.oneBatchIssuedTwice)
	t.Run("BindRefusedAndMade", r.bindRefusedAndMade)
	t.Run("OneVoidAskedTwice", r.oneVoidAskedTwice)
}

type races struct {
	processes [2]Platform
	workers   *Workers
	numbers   *counting
}

// world starts a service on one of the two, with a hooked store.
func (r races) world(t *testing.T, i int, step func(string)) (*World, *Hooked) {
	hooks := &Hooked{Store: r.processes[i].Store}
	return newWorld(t, hooks, r.processes[i].Control, r.workers, r.numbers, coupon.Options{Step: step}), hooks
}

// oneClaimDrivenTwice has a second process bind the coupon of a pending claim that
// the first is about to bind, and stop before it says so.
func (r races) oneClaimDrivenTwice(t *testing.T) {
	bound, goOn := make(chan struct{}), make(chan struct{})
	first, hooks := r.world(t, 0, nil)
	second, _ := r.world(t, 1, func(point string) {
		if point == coupon.StepClaimBound {
			close(bound)
			<-goOn
		}
	})
	ann, _ := users(t)
	c := first.Campaign(t, 64, nil)
	ref := Elsewhere(t, first.Store, c.ID, ann)
	Pend(t, first.Store, coupon.Claim{User: ann, Campaign: c.ID, Request: "r1", Number: 1, Coupon: ref.ID})
	var once sync.Once
	other := make(chan error, 1)
	hooks.BeforeWrite = func(key shard.Key) {
		if key != ref.ID {
			return
		}
		once.Do(func() {
			go func() { other <- errOf(second.Claim(t.Context(), c.ID, call(ann, "", "r1"))) }()
			<-bound
		})
	}
	got := must(first.Claim(t.Context(), c.ID, call(ann, "", "r1")))(t)
	close(goOn)
	if err := <-other; err != nil {
		t.Error(err)
	}
	if got.Coupon.ID != ref.ID {
		t.Errorf("the claim of coupon %d got %d", ref.ID, got.Coupon.ID)
	}
	wallet(t, first, ann, got.Coupon)
}

// oneBatchIssuedTwice has a second process issue all of a batch, but for saying
// that it is done, after the first has seen that nothing was.
func (r races) oneBatchIssuedTwice(t *testing.T) {
	issued, goOn := make(chan struct{}), make(chan struct{})
	first, hooks := r.world(t, 0, nil)
	var told sync.Once
	second, _ := r.world(t, 1, func(point string) {
		if point == coupon.StepIssueChunked {
			told.Do(func() { close(issued); <-goOn })
		}
	})
	c := first.Campaign(t, 64, nil) // two on each shard: the first eight have none left afterwards
	request := coupon.IssueRequest{Campaign: c.ID, Batch: "b1", Order: "o1", Count: 40}
	other := make(chan error, 1)
	var once sync.Once
	hooks.BeforeWrite = func(key shard.Key) {
		if _, chunk := key.(shard.Shard); chunk {
			once.Do(func() {
				go func() { _, err := second.Issue(t.Context(), request); other <- err }()
				<-issued
			})
		}
	}
	_, err := first.Issue(t.Context(), request)
	close(goOn)
	if err := errors.Join(err, <-other); err != nil {
		t.Error(err)
	}
	coupons, err := first.OrderCoupons(t.Context(), "o1", coupon.OrderIssued, 0, 100)
	if err != nil || len(coupons) != 40 {
		t.Errorf("the order of 40 has %d coupons, %v", len(coupons), err)
	}
}

// bindRefusedAndMade has the sweeper meet a bind while an order holds its coupon,
// and remove it. Then the hold goes and the bind's own process goes on.
func (r races) bindRefusedAndMade(t *testing.T) {
	ann, _ := users(t)
	var coupons []coupon.Coupon
	var other *World
	first, _ := r.world(t, 0, func(point string) {
		if point != coupon.StepBindPending {
			return
		}
		held := coupons[0]
		must(other.Reserve(t.Context(), byID(held), call("", "o1", ""), time.Minute))(t)
		if err := other.Sweep(t.Context(), shard.Text(ann).Bucket().Shard(), -time.Minute); err != nil {
			t.Error(err)
		}
		must(other.Release(t.Context(), byID(held), call("", "o1", "")))(t)
	})
	other, _ = r.world(t, 1, nil)
	c := first.Campaign(t, 128, nil)
	for _, c := range first.issued(t, c, "gifts", 96) {
		if !shard.Same(c.ID, shard.Text(ann)) {
			coupons = append(coupons, c)
		}
	}
	must(first.Bind(t.Context(), byID(coupons[0]), call(ann, "", "bind-1")))(t)
	want(t, "the same request for another coupon", errOf(other.Bind(t.Context(), byID(coupons[1]), call(ann, "", "bind-1"))), coupon.ErrMismatch)
	wallet(t, first, ann, must(first.Get(t.Context(), byID(coupons[0]), ann))(t).Coupon)
}

// oneVoidAskedTwice has a second process make the void that the first is about to
// make.
func (r races) oneVoidAskedTwice(t *testing.T) {
	first, hooks := r.world(t, 0, nil)
	second, _ := r.world(t, 1, nil)
	ann, _ := users(t)
	c := first.Campaign(t, 64, nil)
	id := must(first.claim(t.Context(), c.ID, ann, "r1"))(t).Coupon.ID
	must(first.Redeem(t.Context(), coupon.Target{ID: id}, call(ann, "o1", "")))(t)
	var once sync.Once
	hooks.BeforeWrite = func(shard.Key) {
		once.Do(func() { must(second.Void(t.Context(), id, call("", "o1", "v1")))(t) })
	}
	if got := must(first.Void(t.Context(), id, call("", "o1", "v1")))(t); !got.Replayed || got.Coupon.Status != coupon.Issued {
		t.Errorf("%+v", got)
	}
}
