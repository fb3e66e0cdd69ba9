package couponsql

import (
	"encoding/json"

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
	payload, err := m.encode()
	if err != nil {
		return err
	}
	_, err = t.write.Exec(insertMessage, m.Event.Coupon, m.Event.Version, payload)
	return err
}

// A payload is a message as it is stored. Times are ms since 1970; what has no
// value is left out.
type payload struct {
	Type    coupon.EventType `json:"type"`
	At      int64            `json:"at"`
	Actor   string           `json:"actor,omitempty"`
	User    string           `json:"user,omitempty"`
	Order   string           `json:"order,omitempty"`
	Request string           `json:"request,omitempty"`
	Coupon  state            `json:"coupon"`
	IDs     []coupon.ID      `json:"ids,omitempty"`
}

// A state is a coupon in a payload.
type state struct {
	ID            coupon.ID       `json:"id"`
	Version       uint32          `json:"version"`
	Code          string          `json:"code,omitempty"`
	Campaign      int64           `json:"campaign"`
	Status        coupon.Status   `json:"status"`
	User          string          `json:"user,omitempty"`
	Order         string          `json:"order,omitempty"`
	IssuedAt      int64           `json:"issued_at,omitempty"`
	ValidFrom     int64           `json:"valid_from,omitempty"`
	ValidUntil    int64           `json:"valid_until,omitempty"`
	ReservedOrder string          `json:"reserved_order,omitempty"`
	ReservedUntil int64           `json:"reserved_until,omitempty"`
	RedeemedOrder string          `json:"redeemed_order,omitempty"`
	RedeemedUser  string          `json:"redeemed_user,omitempty"`
	RedeemedAt    int64           `json:"redeemed_at,omitempty"`
	Kind          string          `json:"kind"`
	ValueMinor    int64           `json:"value_minor"`
	Currency      string          `json:"currency"`
	VoidKind      string          `json:"void_kind"`
	VoidDays      int             `json:"void_days,omitempty"`
	Attributes    json.RawMessage `json:"attributes,omitempty"`
	Created       int64           `json:"created"`
	Updated       int64           `json:"updated"`
}

func (m message) encode() ([]byte, error) {
	e := m.Event
	if len(m.IDs) > 0 {
		m.Coupon.Code = coupon.Code{}
	}
	return json.Marshal(payload{
		Type: e.Type, At: millis(e.At), Actor: e.Actor, User: e.User, Order: e.Order, Request: e.Request,
		Coupon: stateOf(m.Coupon), IDs: m.IDs,
	})
}

func stateOf(c coupon.Coupon) state {
	return state{
		ID: c.ID, Version: c.Version, Code: c.Code.Symbols(), Campaign: c.Campaign, Status: c.Status,
		User: c.User, Order: c.Order, IssuedAt: millis(c.IssuedAt),
		ValidFrom: millis(c.Valid.From), ValidUntil: millis(c.Valid.Until),
		ReservedOrder: c.ReservedOrder, ReservedUntil: millis(c.ReservedUntil),
		RedeemedOrder: c.RedeemedOrder, RedeemedUser: c.RedeemedUser, RedeemedAt: millis(c.RedeemedAt),
		Kind: c.Kind, ValueMinor: c.Value.Minor, Currency: c.Value.Currency,
		VoidKind: c.VoidPolicy.Kind, VoidDays: c.VoidPolicy.Days, Attributes: c.Attributes,
		Created: millis(c.Created), Updated: millis(c.Updated),
	}
}
