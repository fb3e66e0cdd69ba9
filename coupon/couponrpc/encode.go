package couponrpc

import (
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc/couponv1"
)

// instant returns a time as the wire has it; the zero time is none.
func instant(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// text returns a text as the wire has it; "" is none.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func encodeMoney(a coupon.Amount) *couponv1.Money {
	return &couponv1.Money{AmountMinor: a.Minor, Currency: a.Currency}
}

func encodeCampaign(c coupon.Campaign) *couponv1.Campaign {
	m := &couponv1.Campaign{
		Id: c.ID, Name: c.Name, Kind: c.Kind, Source: c.Source, State: string(c.State),
		Total: uint32(c.Total), Generated: uint32(c.Generated), PerUserLimit: uint32(c.PerUserLimit),
		ValidFrom: instant(c.ValidFrom), ValidUntil: instant(c.ValidUntil), ValidDays: uint32(c.ValidDays), TimeZone: c.TimeZone,
		Value: encodeMoney(c.Value), VoidPolicy: &couponv1.VoidPolicy{Kind: c.VoidPolicy.Kind, Days: uint32(c.VoidPolicy.Days)},
		CreatedAt: instant(c.Created), Version: c.Version,
	}
	if c.Attributes != nil {
		m.Attributes = new(structpb.Struct)
		_ = m.Attributes.UnmarshalJSON(c.Attributes) // it was checked when it came in
	}
	return m
}

// encodeCreate is the reverse of decodeCreate.
func encodeCreate(c coupon.Campaign) (*couponv1.CreateRequest, error) {
	if c.Total < 0 || c.Total > coupon.MaxTotal { // the wire has fewer bits
		return nil, invalid("total", "total is %d: want 1 to %d", c.Total, coupon.MaxTotal)
	}
	m := &couponv1.CreateRequest{
		Name: c.Name, Kind: c.Kind, Source: c.Source, Total: uint32(c.Total), PerUserLimit: uint32(max(0, c.PerUserLimit)),
		ValidFrom: instant(c.ValidFrom), ValidUntil: instant(c.ValidUntil), ValidDays: uint32(max(0, c.ValidDays)), TimeZone: c.TimeZone,
		Value: encodeMoney(c.Value), VoidPolicy: &couponv1.VoidPolicy{Kind: c.VoidPolicy.Kind, Days: uint32(max(0, c.VoidPolicy.Days))},
	}
	if c.Attributes != nil {
		m.Attributes = new(structpb.Struct)
		if err := m.Attributes.UnmarshalJSON(c.Attributes); err != nil {
			return nil, invalid("attributes", "attributes are not a JSON object")
		}
	}
	return m, nil
}

// encodeCoupon returns a coupon as it is at an instant.
func encodeCoupon(c coupon.Coupon, now time.Time) *couponv1.Coupon {
	status := c.At(now)
	m := &couponv1.Coupon{
		Id: int64(c.ID), Code: c.Code.String(), CampaignId: c.Campaign, UserId: text(c.User), OrderNo: text(c.Order),
		Status: status.String(), Value: encodeMoney(c.Value),
		ValidFrom: instant(c.Valid.From), ExpireTime: instant(c.Valid.Until),
		RedeemedAt: instant(c.RedeemedAt), RedeemedOrderNo: text(c.RedeemedOrder), Version: c.Version,
	}
	if status == coupon.Reserved {
		m.ReservedUntil = instant(c.ReservedUntil)
	}
	if m.UserId == nil {
		m.UserId = text(c.RedeemedUser)
	}
	return m
}

func encodeCoupons(all []coupon.Coupon, now time.Time) []*couponv1.Coupon {
	list := make([]*couponv1.Coupon, len(all))
	for i, c := range all {
		list[i] = encodeCoupon(c, now)
	}
	return list
}

func encodeResult(r coupon.Result) *couponv1.CouponResult {
	return &couponv1.CouponResult{
		Coupon: encodeCoupon(r.Coupon, r.At), RedemptionId: text(r.Redemption()), Replayed: r.Replayed,
	}
}

func encodeOperation(o coupon.Operation) *couponv1.Operation {
	return &couponv1.Operation{
		Id: o.ID, Kind: o.Kind, Done: o.Done, Total: uint32(o.Total),
		Succeeded: uint32(o.Succeeded), Failed: uint32(o.Failed), Error: text(o.Error),
	}
}

func encodeEvent(e coupon.Event) *couponv1.Event {
	return &couponv1.Event{
		Version: e.Version, Type: string(e.Type), At: instant(e.At), Actor: e.Actor,
		UserId: text(e.User), OrderNo: text(e.Order), RequestNo: text(e.Request),
	}
}
