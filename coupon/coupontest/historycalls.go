package coupontest

import (
	"context"
	"time"

	"github.com/tallystick/tallystick/coupon"
)

// Calls are what callers do to coupons, in this process or through a server.
type Calls interface {
	Claim(ctx context.Context, campaign int64, call coupon.Call) (coupon.Result, error)
	Bind(ctx context.Context, id coupon.ID, call coupon.Call) (coupon.Result, error)
	Reserve(ctx context.Context, id coupon.ID, call coupon.Call, ttl time.Duration) (coupon.Result, error)
	Release(ctx context.Context, id coupon.ID, call coupon.Call) (coupon.Result, error)
	Redeem(ctx context.Context, id coupon.ID, call coupon.Call) (coupon.Result, error)
	Void(ctx context.Context, id coupon.ID, call coupon.Call) (coupon.Result, error)
	Get(ctx context.Context, id coupon.ID) (coupon.Result, error)
}

// Do makes the call of an act, but for a claim's, which names no coupon.
func Do(ctx context.Context, calls Calls, a Act) (coupon.Result, error) {
	call := coupon.Call{User: a.User, Order: a.Order, Request: a.Request}
	switch a.Op {
	case "bind":
		return calls.Bind(ctx, a.Coupon, call)
	case "reserve":
		return calls.Reserve(ctx, a.Coupon, call, a.TTL)
	case "release":
		return calls.Release(ctx, a.Coupon, call)
	case "redeem":
		return calls.Redeem(ctx, a.Coupon, call)
	case "void":
		return calls.Void(ctx, a.Coupon, call)
	case "get":
		return calls.Get(ctx, a.Coupon)
	}
	panic("no such act: " + a.Op)
}

// Local are the calls of a service in this process.
type Local struct{ *coupon.Service }

// Bind gives a bearer coupon to a user.
func (l Local) Bind(ctx context.Context, id coupon.ID, call coupon.Call) (coupon.Result, error) {
	return l.Service.Bind(ctx, coupon.Target{ID: id}, call)
}

// Reserve holds a coupon for an order.
func (l Local) Reserve(ctx context.Context, id coupon.ID, call coupon.Call, ttl time.Duration) (coupon.Result, error) {
	return l.Service.Reserve(ctx, coupon.Target{ID: id}, call, ttl)
}

// Release gives up an order's hold.
func (l Local) Release(ctx context.Context, id coupon.ID, call coupon.Call) (coupon.Result, error) {
	return l.Service.Release(ctx, coupon.Target{ID: id}, call)
}

// Redeem uses a coupon for an order.
func (l Local) Redeem(ctx context.Context, id coupon.ID, call coupon.Call) (coupon.Result, error) {
	return l.Service.Redeem(ctx, coupon.Target{ID: id}, call)
}

// Get returns a coupon.
func (l Local) Get(ctx context.Context, id coupon.ID) (coupon.Result, error) {
	return l.Service.Get(ctx, coupon.Target{ID: id}, "")
}
