package couponsql

import (
	"strings"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// The columns are what statements ask for and what keys are made of. All else is
// the body, one text: each column is parsed, described and set with each
// statement, and that is most of what a statement costs.
const couponColumns = "c.id, c.campaign_id, c.code, c.status, c.version, c.created_at, c.body"

var (
	selectCoupon  = shard.SQL("SELECT " + couponColumns + " FROM coupon_# AS c WHERE c.id = ?")
	selectByCode  = shard.SQL("SELECT " + couponColumns + " FROM coupon_# AS c WHERE c.code = ?")
	selectCoupons = worded("SELECT " + couponColumns + " FROM {list} AS list JOIN coupon_# AS c ON c.id = list.id")
	holdCoupon    = worded("SELECT " + couponColumns + " FROM coupon_# AS c WHERE c.id = ? {lock}")
	holdByCode    = worded("SELECT " + couponColumns + " FROM coupon_# AS c WHERE c.code = ? {lock}")

	// The version says more than the status does. A row that is held needs no
	// guard, whose comparison costs a third of the statement.
	updateHeld   = shard.SQL("UPDATE coupon_# SET status = ?, version = ?, body = ? WHERE id = ?")
	updateCoupon = shard.SQL("UPDATE coupon_# SET status = ?, version = ?, body = ? WHERE id = ? AND version = ?")
)

func scanCoupon(row scanner) (c coupon.Coupon, err error) {
	var body []byte
	if err = row.Scan(&c.ID, &c.Campaign, codeColumn{&c.Code}, &c.Status, &c.Version, timeColumn{&c.Created}, &body); err != nil {
		return c, err
	}
	return c, c.DecodeBody(body)
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

// A held is a coupon whose row a transaction has read and locked: the version that
// it read is the coupon's until it ends or changes it.
type held struct {
	id      coupon.ID
	version uint32
}

// Coupon returns a coupon, or [coupon.ErrNoRow], and locks it.
func (t tx) Coupon(id coupon.ID) (coupon.Coupon, error) {
	return t.hold(one(t.QueryRow(t.in(holdCoupon), id), scanCoupon))
}

// ByCode returns the coupon of a code, or [coupon.ErrNoRow], and locks it.
func (t tx) ByCode(code coupon.Code) (coupon.Coupon, error) {
	return t.hold(one(t.QueryRow(t.in(holdByCode), code.Symbols()), scanCoupon))
}

func (t tx) hold(c coupon.Coupon, err error) (coupon.Coupon, error) {
	if err == nil {
		*t.held = held{c.ID, c.Version}
	}
	return c, err
}

// Change stores a coupon, which has to have the version before, with a line of its
// ledger. The coupon's row comes first: who waits for it does not hold others up.
func (t tx) Change(c coupon.Coupon, e coupon.Event) error {
	if err := t.update(c); err != nil {
		return err
	}
	return t.addLine(coupon.Message{Event: e, Coupon: c})
}

// bodySize is the bytes that a body has at least, beside its attributes: enough for
// one that is redeemed. A row that keeps its size is changed where it is; one that
// grows moves, and its page splits when it is full.
const bodySize = 352

// bodyOf returns a coupon's body, with spaces up to that size.
func bodyOf(c coupon.Coupon) (string, error) {
	body, err := c.EncodeBody()
	room := bodySize + len(c.Attributes) - len(body)
	return string(body) + strings.Repeat(" ", max(0, room)), err
}

func (t tx) update(c coupon.Coupon) error {
	body, err := bodyOf(c)
	if err != nil {
		return err
	}
	if *t.held == (held{c.ID, c.Version - 1}) {
		t.held.version = c.Version
		return t.write.Queue(updateHeld, c.Status, c.Version, body, c.ID)
	}
	return t.write.Must(updateCoupon, c.Status, c.Version, body, c.ID, c.Version-1)
}
