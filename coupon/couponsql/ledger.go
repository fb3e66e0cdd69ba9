package couponsql

import (
	"slices"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

var (
	selectEvents = shard.SQL("SELECT version, event FROM ledger_# WHERE coupon_id = ? ORDER BY version")
	insertLine   = shard.SQL("INSERT INTO ledger_# (coupon_id, version, waiting, at, once, event) VALUES (?, ?, 1, ?, ?, ?)")
)

// Events returns a coupon's ledger, by rising version, without the lines of bulk
// steps that have their key from the coupon, which was the first.
func (r rows) Events(id coupon.ID) ([]coupon.Event, error) {
	scan := func(row scanner) (coupon.Event, error) {
		var version uint32
		var text []byte
		if err := row.Scan(&version, &text); err != nil {
			return coupon.Event{}, err
		}
		return coupon.DecodeEvent(id, version, text)
	}
	events, err := all(r, scan, selectEvents, id)
	return slices.DeleteFunc(events, func(e coupon.Event) bool { return e.Type.InBulk() }), err
}

// addLine adds a line, which waits until its message is published: one row is both,
// because a row is most of what a statement costs.
func (t tx) addLine(m coupon.Message) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	e := m.Event
	return t.write.Queue(insertLine, e.Coupon, e.Version, millis(e.At), unless(e.Once()), string(text))
}
