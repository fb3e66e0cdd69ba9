package couponsql

import (
	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

var (
	selectRedeemed   = shard.SQL("SELECT coupon_id FROM order_redeemed_# WHERE order_no = ? AND coupon_id > ? AND voided = 0 ORDER BY coupon_id LIMIT ?")
	upsertRedemption = upsertingNewer("order_redeemed_#", 2, "order_no", "coupon_id", "voided", "version")
)

// Redeemed returns up to n coupons above after that an order redeemed.
func (r rows) Redeemed(order string, after coupon.ID, n int) ([]coupon.ID, error) {
	scan := func(row scanner) (id coupon.ID, err error) {
		err = row.Scan(&id)
		return id, err
	}
	return all(r, scan, selectRedeemed, order, after, n)
}

// KeepRedemption writes a row of an order's list unless a newer one is there.
func (t tx) KeepRedemption(r coupon.OrderRedemption) error {
	return t.write.Queue(t.in(upsertRedemption), r.Order, r.Coupon, r.Voided, r.Version)
}
