package coupontest_test

import (
	"testing"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
)

func TestOutboxInMemory(t *testing.T) {
	o := new(coupontest.Outbox)
	coupontest.TestOutbox(t, coupontest.OutboxSubject{Outbox: o, Put: func(_ *testing.T, c coupon.Coupon) {
		e := coupon.Event{Coupon: c.ID, Version: c.Version, Type: coupon.WasGenerated, At: c.Created}
		o.Put(coupon.Message{Event: e, Coupon: c, IDs: []coupon.ID{c.ID}})
	}})
}
