package couponrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc/couponv1"
)

// decodeAll decodes each of a list.
func decodeAll[M, T any](list []M, decode func(M) (T, error)) ([]T, error) {
	all := make([]T, 0, len(list))
	for _, m := range list {
		one, err := decode(m)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// when is the reverse of instant.
func when(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func decodeMoney(m *couponv1.Money) coupon.Amount {
	return coupon.Amount{Minor: m.GetAmountMinor(), Currency: m.GetCurrency()}
}

func decodeCampaign(m *couponv1.Campaign) (coupon.Campaign, error) {
	c := coupon.Campaign{
		ID: m.GetId(), Name: m.GetName(), Kind: m.GetKind(), Source: m.GetSource(), State: coupon.CampaignState(m.GetState()),
		Total: int64(m.GetTotal()), Generated: int64(m.GetGenerated()), PerUserLimit: int(m.GetPerUserLimit()),
		ValidFrom: when(m.ValidFrom), ValidUntil: when(m.ValidUntil), ValidDays: int(m.GetValidDays()), TimeZone: m.GetTimeZone(),
		Value: decodeMoney(m.GetValue()), VoidPolicy: coupon.VoidPolicy{Kind: m.GetVoidPolicy().GetKind(), Days: int(m.GetVoidPolicy().GetDays())},
		Created: when(m.CreatedAt), Version: m.GetVersion(),
	}
	var err error
	if m.Attributes != nil {
		c.Attributes, err = m.GetAttributes().MarshalJSON()
	}
	return c, err
}

// decodeCreate returns the campaign a request describes.
func decodeCreate(m *couponv1.CreateRequest) (coupon.Campaign, error) {
	c := coupon.Campaign{
		Name: m.GetName(), Kind: m.GetKind(), Source: m.GetSource(), Total: int64(m.GetTotal()),
		PerUserLimit: int(m.GetPerUserLimit()), ValidDays: int(m.GetValidDays()), TimeZone: m.GetTimeZone(),
		Value:      decodeMoney(m.GetValue()),
		VoidPolicy: coupon.VoidPolicy{Kind: m.GetVoidPolicy().GetKind(), Days: int(m.GetVoidPolicy().GetDays())},
	}
	for _, at := range []struct {
		field string
		from  *timestamppb.Timestamp
		to    *time.Time
	}{{"valid_from", m.ValidFrom, &c.ValidFrom}, {"valid_until", m.ValidUntil, &c.ValidUntil}} {
		if at.from == nil {
			continue
		}
		if !at.from.IsValid() {
			return c, invalid(at.field, "%s is no instant", at.field)
		}
		*at.to = at.from.AsTime()
	}
	if m.Attributes != nil {
		b, err := json.Marshal(m.GetAttributes().AsMap())
		if err != nil {
			return c, invalid("attributes", "attributes are not JSON")
		}
		c.Attributes = b
	}
	return c, nil
}

// decodeCoupon returns a coupon as the server saw it: its status is the computed
// one.
func decodeCoupon(m *couponv1.Coupon) (coupon.Coupon, error) {
	code, err := coupon.ParseStored(strings.ReplaceAll(m.GetCode(), "-", ""))
	status, known := coupon.ParseStatus(m.GetStatus())
	if !known {
		err = errors.Join(err, fmt.Errorf("couponrpc: status %q is not known: the server is newer", m.GetStatus()))
	}
	return coupon.Coupon{
		ID: coupon.ID(m.GetId()), Code: code, Campaign: m.GetCampaignId(), User: m.GetUserId(), Order: m.GetOrderNo(),
		Status: status, Value: decodeMoney(m.GetValue()),
		Valid:         coupon.Window{From: when(m.ValidFrom), Until: when(m.ExpireTime)},
		ReservedUntil: when(m.ReservedUntil), RedeemedAt: when(m.RedeemedAt), RedeemedOrder: m.GetRedeemedOrderNo(),
		Version: m.GetVersion(),
	}, err
}

func decodeResult(m *couponv1.CouponResult) (coupon.Result, error) {
	c, err := decodeCoupon(m.GetCoupon())
	return coupon.Result{Coupon: c, Replayed: m.GetReplayed(), At: time.Now()}, err
}

func decodeOperation(m *couponv1.Operation) (coupon.Operation, error) {
	return coupon.Operation{
		ID: m.GetId(), Kind: m.GetKind(), Done: m.GetDone(), Total: int64(m.GetTotal()),
		Succeeded: int64(m.GetSucceeded()), Failed: int64(m.GetFailed()), Error: m.GetError(),
	}, nil
}

func decodeIssue(m *couponv1.IssueResponse) (coupon.Issue, error) {
	issue := coupon.Issue{Batch: coupon.Batch{BatchKey: coupon.BatchKey{Number: m.GetBatchNo()}}, At: time.Now()}
	if m.GetOperation() != nil {
		op, err := decodeOperation(m.GetOperation())
		issue.Operation = &op
		return issue, err
	}
	var err error
	issue.Coupons, err = decodeAll(m.GetCoupons(), decodeCoupon)
	return issue, err
}

func decodeEvent(m *couponv1.Event) (coupon.Event, error) {
	return coupon.Event{
		Version: m.GetVersion(), Type: coupon.EventType(m.GetType()), At: when(m.At), Actor: m.GetActor(),
		User: m.GetUserId(), Order: m.GetOrderNo(), Request: m.GetRequestNo(),
	}, nil
}
