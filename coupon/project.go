package coupon

import (
	"context"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/shard"
)

// A Projector brings what messages tell to where it is asked for: a coupon into
// the wallet of a user of another shard, a redemption into the list of its order.
//
// It may apply messages in any order and each any number of times, in any number
// of processes: each row has the version of the coupon that it is of, and only a
// newer one takes its place. The rows of a coupon therefore end as its newest
// message says. It is safe for concurrent use.
type Projector struct{ store Store }

// NewProjector returns a projector that writes to a store.
func NewProjector(store Store) *Projector { return &Projector{store} }

// Apply brings one message to where it belongs. If the process dies half-way, or
// it fails, the message is to be applied again.
func (p *Projector) Apply(ctx context.Context, m Message) error {
	if err := p.wallet(ctx, m); err != nil {
		return fmt.Errorf("wallet row of coupon %d, version %d: %w", m.Coupon.ID, m.Coupon.Version, err)
	}
	if err := p.order(ctx, m); err != nil {
		return fmt.Errorf("order's row of coupon %d, version %d: %w", m.Coupon.ID, m.Coupon.Version, err)
	}
	return nil
}

// wallet passes over bearer coupons, which are in none, and what the transaction
// of the event has written on its own shard.
func (p *Projector) wallet(ctx context.Context, m Message) error {
	c := m.Coupon
	if c.User == "" || shard.Same(c.ID, shard.Text(c.User)) {
		return nil
	}
	if len(m.IDs) == 0 {
		return keepIn(ctx, p.store, c.User, []Coupon{c})
	}
	for ids := range slices.Chunk(m.IDs, userChunk) {
		coupons, err := p.owned(ctx, c, ids)
		if err != nil {
			return err
		}
		if err := keepIn(ctx, p.store, c.User, coupons); err != nil {
			return err
		}
	}
	return nil
}

// owned returns the coupons of a bulk change as they are by now, with their codes,
// which its message does not have.
func (p *Projector) owned(ctx context.Context, like Coupon, ids []ID) (coupons []Coupon, err error) {
	err = p.store.Read(ctx, like.ID, func(rows Rows) (err error) {
		coupons, err = rows.Coupons(ids)
		return err
	})
	return slices.DeleteFunc(coupons, func(c Coupon) bool { return c.User != like.User }), err
}

// keepIn writes coupons into a user's wallet.
func keepIn(ctx context.Context, store Store, user string, coupons []Coupon) error {
	return store.Write(ctx, shard.Text(user), func(tx Tx) error {
		for _, c := range coupons {
			if err := tx.Keep(c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *Projector) order(ctx context.Context, m Message) error {
	r, is := m.redemption()
	if !is {
		return nil
	}
	return p.store.Write(ctx, shard.Text(r.Order), func(tx Tx) error { return tx.KeepRedemption(r) })
}

// redemption returns what the message says about an order that redeemed, and
// false if that is nothing.
func (m Message) redemption() (OrderRedemption, bool) {
	c := m.Coupon
	switch m.Event.Type {
	case WasRedeemed:
		return OrderRedemption{Order: c.RedeemedOrder, Coupon: c.ID, Version: c.Version}, true
	case WasVoided:
		return OrderRedemption{Order: m.Event.Order, Coupon: c.ID, Version: c.Version, Voided: true}, true
	}
	return OrderRedemption{}, false
}
