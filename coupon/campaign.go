package coupon

import (
	"encoding/json"
	"time"
)

// A CampaignState is what may be done with a campaign.
type CampaignState string

// The states. Only claims heed them: what was issued stays good.
const (
	Draft  CampaignState = "DRAFT"
	Active CampaignState = "ACTIVE"
	Paused CampaignState = "PAUSED"
	Ended  CampaignState = "ENDED"
)

// What a campaign is, where nothing is said.
const (
	FixedAmount = "FIXED_AMOUNT" // kind
	Generated   = "GENERATED"    // source of its codes
)

// A Campaign is a stock of coupons and their terms.
type Campaign struct {
	ID           int64
	Name         string
	Kind         string
	Source       string
	State        CampaignState
	Total        int64 // coupons it has once it is generated
	Generated    int64 // coupons it has; equal to Total: generation is closed
	PerUserLimit int   // coupons a user may claim
	ValidFrom    time.Time
	ValidUntil   time.Time // zero: only ValidDays count
	ValidDays    int       // days a claimed coupon is valid; 0: until ValidUntil
	TimeZone     string    // IANA name, whose midnights end days
	Value        Amount
	VoidPolicy   VoidPolicy
	Attributes   json.RawMessage // up to 1 KiB; nil: none
	Created      time.Time
	Version      uint32
}

// Closed reports whether generation is closed: there will be no more coupons.
func (c Campaign) Closed() bool { return c.Generated >= c.Total }

// validity returns when the campaign's coupons are valid.
func (c Campaign) validity() (Validity, error) {
	zone, err := LoadZone(c.TimeZone)
	return Validity{From: c.ValidFrom, Until: c.ValidUntil, Days: c.ValidDays, Zone: zone}, err
}

// open refuses claims while the campaign gives none out.
func (c Campaign) open(now time.Time) error {
	switch {
	case c.State == Paused, c.State == Draft:
		return ErrCampaignPaused
	case c.State == Ended:
		return ErrCampaignEnded
	case !c.ValidUntil.IsZero() && !now.Before(c.ValidUntil):
		return ErrCampaignEnded.With("the campaign's coupons were valid until %s", c.ValidUntil.Format(time.RFC3339))
	}
	return nil
}

// A Ref is a coupon of the stock.
type Ref struct {
	ID   ID
	Code Code
}

// stock returns the coupon behind a ref, as it was generated.
func (c Campaign) stock(r Ref) Coupon {
	return Coupon{
		ID: r.ID, Code: r.Code, Campaign: c.ID, Kind: c.Kind, Value: c.Value, VoidPolicy: c.VoidPolicy,
		Attributes: c.Attributes, Status: Available, Version: 1,
	}
}

// issue returns the coupon of a ref given to a user, an order or both.
func (c Campaign) issue(r Ref, user, order string, now time.Time) (Coupon, error) {
	v, err := c.validity()
	if err != nil {
		return Coupon{}, err
	}
	next := c.stock(r)
	next.Status, next.User, next.Order, next.IssuedAt = Issued, user, order, now
	next.Valid = v.Window(now)
	next.Version, next.Updated = 2, now
	return next, nil
}

// move decides what asking for a state comes to. An ended campaign stays ended.
func (c Campaign) move(to CampaignState) (Campaign, error) {
	if c.State == Ended && to != Ended {
		return c, ErrCampaignEnded
	}
	if c.State != to {
		c.State = to
		c.Version++
	}
	return c, nil
}
