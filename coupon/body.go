package coupon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// A bodyText is a coupon's body as it is stored and published. Times are ms since
// 1970; what has no value is left out. Fields may be added, none may change.
type bodyText struct {
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
	Updated       int64           `json:"updated"`
}

// EncodeBody returns the coupon's body as JSON of at most 3 KiB: all of it but id,
// code, campaign, status, version and time of creation. It fails if the attributes
// are no JSON.
func (c Coupon) EncodeBody() ([]byte, error) {
	text, err := encodeJSON(bodyOf(c))
	if err != nil {
		return nil, fmt.Errorf("coupon %d: %w", c.ID, err)
	}
	return text, nil
}

// DecodeBody sets what [Coupon.EncodeBody] wrote and leaves the rest. Fields that it
// does not know are passed over: a newer process may have added them.
func (c *Coupon) DecodeBody(text []byte) error {
	var b bodyText
	if err := json.Unmarshal(text, &b); err != nil {
		return fmt.Errorf("coupon %d: its body: %w", c.ID, err)
	}
	b.fill(c)
	return nil
}

func bodyOf(c Coupon) bodyText {
	return bodyText{
		User: c.User, Order: c.Order, IssuedAt: millisOf(c.IssuedAt),
		ValidFrom: millisOf(c.Valid.From), ValidUntil: millisOf(c.Valid.Until),
		ReservedOrder: c.ReservedOrder, ReservedUntil: millisOf(c.ReservedUntil),
		RedeemedOrder: c.RedeemedOrder, RedeemedUser: c.RedeemedUser, RedeemedAt: millisOf(c.RedeemedAt),
		Kind: c.Kind, ValueMinor: c.Value.Minor, Currency: c.Value.Currency,
		VoidKind: c.VoidPolicy.Kind, VoidDays: c.VoidPolicy.Days, Attributes: c.Attributes,
		Updated: millisOf(c.Updated),
	}
}

// fill sets what a body has of a coupon.
func (b bodyText) fill(c *Coupon) {
	c.User, c.Order, c.IssuedAt = b.User, b.Order, timeOf(b.IssuedAt)
	c.Valid = Window{From: timeOf(b.ValidFrom), Until: timeOf(b.ValidUntil)}
	c.ReservedOrder, c.ReservedUntil = b.ReservedOrder, timeOf(b.ReservedUntil)
	c.RedeemedOrder, c.RedeemedUser, c.RedeemedAt = b.RedeemedOrder, b.RedeemedUser, timeOf(b.RedeemedAt)
	c.Kind, c.Value = b.Kind, Amount{Minor: b.ValueMinor, Currency: b.Currency}
	c.VoidPolicy = VoidPolicy{Kind: b.VoidKind, Days: b.VoidDays}
	c.Updated = timeOf(b.Updated)
	c.Attributes = nil
	if string(b.Attributes) != "null" {
		c.Attributes = b.Attributes
	}
}

// encodeJSON is json.Marshal that leaves <, > and & as they are.
func encodeJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// millisOf returns a time in ms since 1970, 0 for none.
func millisOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}
