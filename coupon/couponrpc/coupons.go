package couponrpc

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc/couponv1"
)

// defaultPage is how many coupons a page has if nobody says.
const defaultPage = 20

// coupons translates between the wire and a service.
type coupons struct{ *server }

// target returns which coupon a request is about. A code that cannot be one is
// no coupon, for all that anybody is told.
func (c coupons) target(id int64, code string) (coupon.Target, error) {
	switch {
	case id != 0 && code != "":
		return coupon.Target{}, invalid("code", "both id and code are given: want one of them")
	case id < 0:
		return coupon.Target{}, coupon.ErrUnavailable
	case code == "":
		return coupon.Target{ID: coupon.ID(id)}, nil
	}
	parsed, err := c.parse(code)
	if err != nil {
		return coupon.Target{}, coupon.ErrUnavailable
	}
	return coupon.Target{Code: parsed}, nil
}

// call returns who calls, for the ledger.
func (c coupons) call(ctx context.Context, user, order, request string) coupon.Call {
	return coupon.Call{Actor: c.actor(ctx), User: user, Order: order, Request: request}
}

func (c coupons) result(ctx context.Context, r coupon.Result, err error) (*couponv1.CouponResult, error) {
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	return encodeResult(r), nil
}

func (c coupons) Claim(ctx context.Context, m *couponv1.ClaimRequest) (*couponv1.CouponResult, error) {
	r, err := c.svc.Claim(ctx, m.GetCampaignId(), c.call(ctx, m.GetUserId(), "", m.GetRequestNo()))
	return c.result(ctx, r, err)
}

func (c coupons) Bind(ctx context.Context, m *couponv1.BindRequest) (*couponv1.CouponResult, error) {
	t, err := c.target(m.GetId(), m.GetCode())
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	r, err := c.svc.Bind(ctx, t, c.call(ctx, m.GetUserId(), "", m.GetRequestNo()))
	return c.result(ctx, r, err)
}

func (c coupons) Reserve(ctx context.Context, m *couponv1.ReserveRequest) (*couponv1.CouponResult, error) {
	t, err := c.target(m.GetId(), m.GetCode())
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	ttl := coupon.DefaultHold
	if n := m.GetTtlSeconds(); n > 0 {
		ttl = time.Duration(n) * time.Second
	}
	r, err := c.svc.Reserve(ctx, t, c.call(ctx, m.GetUserId(), m.GetOrderNo(), ""), ttl)
	return c.result(ctx, r, err)
}

func (c coupons) Redeem(ctx context.Context, m *couponv1.RedeemRequest) (*couponv1.CouponResult, error) {
	t, err := c.target(m.GetId(), m.GetCode())
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	r, err := c.svc.Redeem(ctx, t, c.call(ctx, m.GetUserId(), m.GetOrderNo(), ""))
	return c.result(ctx, r, err)
}

func (c coupons) Release(ctx context.Context, m *couponv1.ReleaseRequest) (*couponv1.CouponResult, error) {
	t, err := c.target(m.GetId(), m.GetCode())
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	r, err := c.svc.Release(ctx, t, c.call(ctx, m.GetUserId(), m.GetOrderNo(), ""))
	return c.result(ctx, r, err)
}

func (c coupons) Void(ctx context.Context, m *couponv1.VoidRequest) (*couponv1.CouponResult, error) {
	t, err := c.target(m.GetId(), "")
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	r, err := c.svc.Void(ctx, t.ID, c.call(ctx, "", m.GetOrderNo(), m.GetRequestNo()))
	return c.result(ctx, r, err)
}

func (c coupons) GetCoupon(ctx context.Context, m *couponv1.GetCouponRequest) (*couponv1.Coupon, error) {
	return c.get(ctx, m.GetId(), "", m.GetUserId())
}

func (c coupons) GetByCode(ctx context.Context, m *couponv1.GetByCodeRequest) (*couponv1.Coupon, error) {
	return c.get(ctx, 0, m.GetCode(), m.GetUserId())
}

func (c coupons) get(ctx context.Context, id int64, code, user string) (*couponv1.Coupon, error) {
	t, err := c.target(id, code)
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	r, err := c.svc.Get(ctx, t, user)
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	return encodeCoupon(r.Coupon, r.At), nil
}

func (c coupons) History(ctx context.Context, m *couponv1.HistoryRequest) (*couponv1.HistoryResponse, error) {
	events, err := c.svc.History(ctx, coupon.ID(m.GetId()))
	answer := new(couponv1.HistoryResponse)
	for _, e := range events {
		answer.Events = append(answer.Events, encodeEvent(e))
	}
	return answer, c.fail(ctx, err)
}

func (c coupons) OrderCoupons(ctx context.Context, m *couponv1.OrderCouponsRequest) (*couponv1.OrderCouponsResponse, error) {
	role := cmp.Or(coupon.OrderRole(m.GetRole()), coupon.OrderIssued)
	query := []string{"order", m.GetOrderNo(), string(role)}
	at, err := parseToken(m.GetPageToken(), query...)
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	n := pageSize(m.GetPageSize(), defaultPage)
	all, err := c.svc.OrderCoupons(ctx, m.GetOrderNo(), role, coupon.ID(at.id), n)
	answer := &couponv1.OrderCouponsResponse{Coupons: encodeCoupons(all, time.Now())}
	if len(all) == n {
		answer.NextPageToken = pageEnd{id: int64(all[n-1].ID)}.token(query...)
	}
	return answer, c.fail(ctx, err)
}

func (c coupons) Wallet(ctx context.Context, m *couponv1.WalletRequest) (*couponv1.WalletResponse, error) {
	query := append([]string{"wallet", m.GetUserId(), strconv.FormatBool(m.GetFresh())}, m.GetStatus()...)
	at, err := parseToken(m.GetPageToken(), query...)
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	wanted, err := parseStatuses(m.GetStatus())
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	page, err := c.svc.Wallet(ctx, coupon.WalletQuery{
		User: m.GetUserId(), Status: wanted, After: coupon.WalletKey{Until: at.until, ID: coupon.ID(at.id)},
		Size: pageSize(m.GetPageSize(), defaultPage), Fresh: m.GetFresh(),
	})
	answer := &couponv1.WalletResponse{Coupons: encodeCoupons(page.Coupons, time.Now())}
	if err == nil && !page.End {
		answer.NextPageToken = pageEnd{page.Next.Until, int64(page.Next.ID)}.token(query...)
	}
	return answer, c.fail(ctx, err)
}

// parseStatuses reads statuses by name; several may stand in one, by commas.
func parseStatuses(names []string) ([]coupon.Status, error) {
	var all []coupon.Status
	for _, name := range strings.Split(strings.Join(names, ","), ",") {
		if name == "" {
			continue
		}
		s, ok := coupon.ParseStatus(name)
		if !ok {
			return nil, invalid("status", "status is %.40q: want one of %v", name, coupon.Statuses())
		}
		all = append(all, s)
	}
	return all, nil
}
