package couponsql

import (
	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

const couponColumns = `c.id, c.campaign_id, c.code, c.status, c.version, c.user_id, c.order_no, c.issued_at,
	c.valid_from, c.valid_until, c.reserved_order, c.reserved_until, c.redeemed_order, c.redeemed_user, c.redeemed_at,
	c.kind, c.value_minor, c.currency, c.void_kind, c.void_days, c.attributes, c.created_at, c.updated_at`

var (
	selectCoupon  = shard.SQL("SELECT " + couponColumns + " FROM coupon_instance_# AS c WHERE c.id = ?")
	selectByCode  = shard.SQL("SELECT " + couponColumns + " FROM coupon_instance_# AS c WHERE c.code = ?")
	selectCoupons = worded("SELECT " + couponColumns + " FROM {list} AS list JOIN coupon_instance_# AS c ON c.id = list.id")

	// Guarded by the version, which says more than the status does.
	updateCoupon = shard.SQL(`UPDATE coupon_instance_# SET code = ?, status = ?, version = ?, user_id = ?, order_no = ?, issued_at = ?,
		valid_from = ?, valid_until = ?, reserved_order = ?, reserved_until = ?, redeemed_order = ?, redeemed_user = ?, redeemed_at = ?,
		kind = ?, value_minor = ?, currency = ?, void_kind = ?, void_days = ?, attributes = ?, updated_at = ?
		WHERE id = ? AND version = ?`)
)

func scanCoupon(row scanner) (c coupon.Coupon, err error) {
	err = row.Scan(&c.ID, &c.Campaign, codeColumn{&c.Code}, &c.Status, &c.Version, &c.User, &c.Order, timeColumn{&c.IssuedAt},
		timeColumn{&c.Valid.From}, timeColumn{&c.Valid.Until}, &c.ReservedOrder, timeColumn{&c.ReservedUntil},
		&c.RedeemedOrder, &c.RedeemedUser, timeColumn{&c.RedeemedAt},
		&c.Kind, &c.Value.Minor, &c.Value.Currency, &c.VoidPolicy.Kind, &c.VoidPolicy.Days,
		documentColumn(&c.Attributes), timeColumn{&c.Created}, timeColumn{&c.Updated})
	return c, err
}

// Coupon returns a coupon, or [coupon.ErrNoRow].
func (r rows) Coupon(id coupon.ID) (coupon.Coupon, error) {
	return one(r.QueryRow(selectCoupon, id), scanCoupon)
}

// ByCode returns the coupon of a code, or [coupon.ErrNoRow].
func (r rows) ByCode(code coupon.Code) (coupon.Coupon, error) {
	return one(r.QueryRow(selectByCode, code.Symbols()), scanCoupon)
}

// Coupons returns those of ids that there are.
func (r rows) Coupons(ids []coupon.ID) ([]coupon.Coupon, error) {
	refs := make([]coupon.Ref, len(ids))
	for i, id := range ids {
		refs[i].ID = id
	}
	return all(r, scanCoupon, r.in(selectCoupons), list(refs))
}

// Change stores a coupon if it has the version before, with ledger and event.
// The coupon's row comes first: whoever waits for it has written nothing yet.
func (t tx) Change(c coupon.Coupon, e coupon.Event) (bool, error) {
	won, err := t.changed(updateCoupon, c.Code.Symbols(), c.Status, c.Version, c.User, c.Order, millis(c.IssuedAt),
		millis(c.Valid.From), millis(c.Valid.Until), c.ReservedOrder, millis(c.ReservedUntil),
		c.RedeemedOrder, c.RedeemedUser, millis(c.RedeemedAt),
		c.Kind, c.Value.Minor, c.Value.Currency, c.VoidPolicy.Kind, c.VoidPolicy.Days,
		document(c.Attributes), millis(c.Updated), c.ID, c.Version-1)
	if err != nil || !won {
		return false, err
	}
	if err := t.addEvent(e); err != nil {
		return false, err
	}
	return true, t.publish(coupon.Message{Event: e, Coupon: c})
}
