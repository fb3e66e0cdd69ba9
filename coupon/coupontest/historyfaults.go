package coupontest

import (
	"context"
	"sync"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// A Faulty store misbehaves in one way, so that a checker can be seen to find it.
type Faulty struct {
	coupon.Store
	Fault string // one of Faults

	mu    sync.Mutex
	taken *coupon.Coupon // the first coupon that was claimed
}

// Faults are the ways.
var Faults = []string{"double redemption", "lost void", "claim of a taken coupon", "release of another order's hold"}

// Write runs fn in a transaction that misbehaves.
func (f *Faulty) Write(ctx context.Context, key shard.Key, fn func(coupon.Tx) error) error {
	return f.Store.Write(ctx, key, func(tx coupon.Tx) error { return fn(faultyTx{tx, f}) })
}

type faultyTx struct {
	coupon.Tx
	f *Faulty
}

// Coupon returns a coupon, which may look other than it is.
func (t faultyTx) Coupon(id coupon.ID) (coupon.Coupon, error) {
	c, err := t.Tx.Coupon(id)
	switch {
	case t.f.Fault == "double redemption" && c.Status == coupon.Redeemed:
		c.Status, c.RedeemedOrder = coupon.Issued, ""
	case t.f.Fault == "release of another order's hold" && c.Status == coupon.Reserved:
		c.ReservedOrder = "o1"
	}
	return c, err
}

// Change writes a coupon, or only says so.
func (t faultyTx) Change(c coupon.Coupon, e coupon.Event) error {
	if t.f.Fault == "lost void" && e.Type == coupon.WasVoided {
		return nil
	}
	if t.f.Fault != "claim of a taken coupon" || e.Type != coupon.WasClaimed {
		return t.Tx.Change(c, e)
	}
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	switch {
	case t.f.taken == nil:
		t.f.taken = &c
	case t.f.taken.ID == c.ID:
		return nil
	}
	return t.Tx.Change(c, e)
}

// Advance returns coupons of the stock, and one that was claimed.
func (t faultyTx) Advance(campaign int64, n int) ([]coupon.Ref, bool, error) {
	refs, end, err := t.Tx.Advance(campaign, n)
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	if c := t.f.taken; c != nil && len(refs) > 0 && c.Campaign == campaign && c.ID.Shard() == refs[0].ID.Shard() {
		refs = append([]coupon.Ref{{ID: c.ID, Code: c.Code}}, refs...)
	}
	return refs, end, err
}
