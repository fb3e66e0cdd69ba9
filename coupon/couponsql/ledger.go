package couponsql

import (
	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

var (
	selectEvents = shard.SQL(`SELECT coupon_id, version, type, at, actor, user_id, order_no, request_no
		FROM ledger_# WHERE coupon_id = ? ORDER BY version`)
	insertEvent = shard.SQL(`INSERT INTO ledger_# (coupon_id, version, type, at, actor, user_id, order_no, request_no, once)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
)

// Events returns a coupon's ledger, by rising version.
func (r rows) Events(id coupon.ID) ([]coupon.Event, error) {
	return all(r, scanEvent, selectEvents, id)
}

func scanEvent(row scanner) (e coupon.Event, err error) {
	err = row.Scan(&e.Coupon, &e.Version, &e.Type, timeColumn{&e.At}, &e.Actor, &e.User, &e.Order, &e.Request)
	return e, err
}

func (t tx) addEvent(e coupon.Event) error {
	return t.write.Queue(insertEvent, e.Coupon, e.Version, e.Type, millis(e.At), e.Actor, e.User, e.Order, e.Request, unless(e.Once()))
}
