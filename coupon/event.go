package coupon

import "time"

// An EventType is what happened to a coupon.
type EventType string

// What happens to coupons.
const (
	WasGenerated EventType = "GENERATED"
	WasIssued    EventType = "ISSUED" // to an order
	WasClaimed   EventType = "CLAIMED"
	WasBound     EventType = "BOUND"
	WasReserved  EventType = "RESERVED"
	WasReleased  EventType = "RELEASED"
	WasRedeemed  EventType = "REDEEMED"
	WasVoided    EventType = "REDEMPTION_VOIDED"
)

// InBulk reports whether events of this type are of many coupons at a time.
func (t EventType) InBulk() bool { return t == WasGenerated || t == WasIssued }

// An Event is a line of a coupon's ledger: the change that made Version of it.
// Lines are never changed. Of what was done in bulk a coupon has none;
// [Service.History] makes it from the coupon.
type Event struct {
	Coupon  ID
	Version uint32
	Type    EventType
	At      time.Time
	Actor   string // who called: a token's name
	User    string
	Order   string
	Request string // business number of the call, if it has one
}

// Once is what makes an event happen at most once to a coupon: the order that
// redeemed, the request that voided. It is "" for events that may recur.
func (e Event) Once() string {
	switch e.Type {
	case WasRedeemed:
		return "order " + e.Order
	case WasVoided:
		return "void " + e.Request
	}
	return ""
}
