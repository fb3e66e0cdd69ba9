package couponsql

import (
	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

var insertMessage = shard.SQL("INSERT INTO outbox_# (coupon_id, version, payload) VALUES (?, ?, ?)")

// A message is what a row of the outbox tells: an event and the coupon after it.
// A bulk step tells once what its coupons have in common, which is all but id and
// code, and the ids of all. Its name is the coupon, the first of several, and the
// version.
type message struct {
	Event  coupon.Event
	Coupon coupon.Coupon
	IDs    []coupon.ID // of a bulk step
}

// publish leaves a message for whoever follows the shard.
func (t tx) publish(m message) error {
	payload, err := coupon.Message(m).Encode()
	if err != nil {
		return err
	}
	_, err = t.write.Exec(insertMessage, m.Event.Coupon, m.Event.Version, payload)
	return err
}
