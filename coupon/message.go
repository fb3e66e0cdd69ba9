package coupon

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A Message tells whoever follows the coupons of an event. It has all of the
// coupon after the event, so that its reader needs no other message: by
// Coupon.Version it tells which of two is newer, whatever order they come in and
// however often.
//
// A bulk change makes one message for all its coupons. Its Coupon is what they have
// in common, which is all but id and code; the id is that of the first, so that
// Event.Coupon and Coupon.Version name every message.
type Message struct {
	Event  Event
	Coupon Coupon
	IDs    []ID // of a bulk change; none: the message is about one coupon
}

// ErrMalformedMessage tells that a text is no message of an event.
var ErrMalformedMessage = errors.New("coupon: not the message of an event")

// A messageText is a message as it is stored and published. Times are ms since
// 1970; what has no value is left out. Fields may be added, none may change.
type messageText struct {
	eventText
	Coupon couponText `json:"coupon"`
	IDs    []ID       `json:"ids,omitempty"`
}

// An eventText is an event without its key, in a messageText and alone.
type eventText struct {
	Type    EventType `json:"type"`
	At      int64     `json:"at"`
	Actor   string    `json:"actor,omitempty"`
	User    string    `json:"user,omitempty"`
	Order   string    `json:"order,omitempty"`
	Request string    `json:"request,omitempty"`
}

// A couponText is a coupon in a messageText.
type couponText struct {
	ID       ID     `json:"id"`
	Version  uint32 `json:"version"`
	Code     string `json:"code,omitempty"`
	Campaign int64  `json:"campaign"`
	Status   Status `json:"status"`
	bodyText
	Created int64 `json:"created"`
}

// Encode returns the message as JSON. It fails if the coupon's attributes are
// none.
func (m Message) Encode() ([]byte, error) {
	e, c := m.Event, textOf(m.Coupon)
	if len(m.IDs) > 0 {
		c.Code = ""
	}
	event := eventText{Type: e.Type, At: millisOf(e.At), Actor: e.Actor, User: e.User, Order: e.Order, Request: e.Request}
	return encodeJSON(messageText{event, c, m.IDs})
}

// DecodeMessage reads what [Message.Encode] returned, or fails with
// [ErrMalformedMessage]. Fields that it does not know are passed over: a newer
// process may have added them.
func DecodeMessage(text []byte) (Message, error) {
	var t messageText
	if err := json.Unmarshal(text, &t); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrMalformedMessage, err)
	}
	if t.Type == "" || t.Coupon.ID <= 0 || t.Coupon.Version == 0 {
		return Message{}, fmt.Errorf("%w: it lacks type, coupon id or version", ErrMalformedMessage)
	}
	c, err := t.Coupon.coupon()
	if err != nil {
		return Message{}, fmt.Errorf("%w: coupon %d: %w", ErrMalformedMessage, t.Coupon.ID, err)
	}
	return Message{Event: t.event(c.ID, c.Version), Coupon: c, IDs: t.IDs}, nil
}

// DecodeEvent reads the event of a message, which may have lost all else: a line of
// a ledger, whose key it is given.
func DecodeEvent(id ID, version uint32, text []byte) (Event, error) {
	var t eventText
	if err := json.Unmarshal(text, &t); err != nil {
		return Event{}, fmt.Errorf("coupon %d: the event of version %d: %w", id, version, err)
	}
	return t.event(id, version), nil
}

func (t eventText) event(id ID, version uint32) Event {
	return Event{
		Coupon: id, Version: version, Type: t.Type, At: timeOf(t.At),
		Actor: t.Actor, User: t.User, Order: t.Order, Request: t.Request,
	}
}

func textOf(c Coupon) couponText {
	return couponText{
		ID: c.ID, Version: c.Version, Code: c.Code.Symbols(), Campaign: c.Campaign, Status: c.Status,
		bodyText: bodyOf(c), Created: millisOf(c.Created),
	}
}

func (t couponText) coupon() (c Coupon, err error) {
	c = Coupon{ID: t.ID, Version: t.Version, Campaign: t.Campaign, Status: t.Status, Created: timeOf(t.Created)}
	t.fill(&c)
	if t.Code != "" {
		c.Code, err = ParseStored(t.Code)
	}
	return c, err
}
