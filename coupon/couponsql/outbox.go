package couponsql

import (
	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

var insertMessage = shard.SQL("INSERT INTO outbox_# (coupon_id, version, payload) VALUES (?, ?, ?)")

// publish leaves a message for whoever follows the shard.
func (t tx) publish(m coupon.Message) error {
	payload, err := m.Encode()
	if err != nil {
		return err
	}
	return t.write.Queue(insertMessage, m.Event.Coupon, m.Event.Version, payload)
}
