package couponrpc

import (
	"context"
	"strconv"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc/couponv1"
)

// defaultList is how many campaigns a page has if nobody says.
const defaultList = 100

// campaigns translates between the wire and a service.
type campaigns struct{ *server }

func (c campaigns) Create(ctx context.Context, m *couponv1.CreateRequest) (*couponv1.Campaign, error) {
	asked, err := decodeCreate(m)
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	created, err := c.svc.CreateCampaign(ctx, asked, c.key(ctx))
	status(ctx, created.ID != 0, 201, "/v1/campaigns/"+strconv.FormatInt(created.ID, 10))
	return encodeCampaign(created), c.fail(ctx, err)
}

// key returns the idempotency key of a call, which is its caller's own; "" if it
// has none.
func (c campaigns) key(ctx context.Context) string {
	info, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok || info.RequestHeader().Get("Idempotency-Key") == "" {
		return ""
	}
	return c.actor(ctx) + " " + info.RequestHeader().Get("Idempotency-Key")
}

func (c campaigns) List(ctx context.Context, m *couponv1.ListRequest) (*couponv1.ListResponse, error) {
	at, err := parseToken(m.GetPageToken(), "campaigns")
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	n := pageSize(m.GetPageSize(), defaultList)
	if n > coupon.MaxList {
		return nil, c.fail(ctx, invalid("page_size", "page_size is %d: want 1 to %d", n, coupon.MaxList))
	}
	all, err := c.svc.Campaigns(ctx, at.id, n)
	answer := new(couponv1.ListResponse)
	for _, one := range all {
		answer.Campaigns = append(answer.Campaigns, encodeCampaign(one))
	}
	if len(all) == n {
		answer.NextPageToken = pageEnd{id: all[n-1].ID}.token("campaigns")
	}
	return answer, c.fail(ctx, err)
}

func (c campaigns) Get(ctx context.Context, m *couponv1.GetRequest) (*couponv1.Campaign, error) {
	got, err := c.svc.Campaign(ctx, m.GetId())
	return encodeCampaign(got), c.fail(ctx, err)
}

func (c campaigns) Pause(ctx context.Context, m *couponv1.PauseRequest) (*couponv1.Campaign, error) {
	return c.move(ctx, m.GetId(), coupon.Paused)
}

func (c campaigns) Resume(ctx context.Context, m *couponv1.ResumeRequest) (*couponv1.Campaign, error) {
	return c.move(ctx, m.GetId(), coupon.Active)
}

func (c campaigns) End(ctx context.Context, m *couponv1.EndRequest) (*couponv1.Campaign, error) {
	return c.move(ctx, m.GetId(), coupon.Ended)
}

func (c campaigns) move(ctx context.Context, id int64, to coupon.CampaignState) (*couponv1.Campaign, error) {
	got, err := c.svc.MoveCampaign(ctx, id, to)
	return encodeCampaign(got), c.fail(ctx, err)
}

func (c campaigns) Generate(ctx context.Context, m *couponv1.GenerateRequest) (*couponv1.Operation, error) {
	op, err := c.svc.Generate(ctx, m.GetId())
	status(ctx, err == nil, 202, operationPath(op))
	return encodeOperation(op), c.fail(ctx, err)
}

func (c campaigns) Issue(ctx context.Context, m *couponv1.IssueRequest) (*couponv1.IssueResponse, error) {
	issue, err := c.svc.Issue(ctx, coupon.IssueRequest{
		Campaign: m.GetId(), Batch: m.GetBatchNo(), Order: m.GetOrderNo(), Count: int64(m.GetCount()), User: m.GetUserId(),
	})
	if err != nil {
		return nil, c.fail(ctx, err)
	}
	answer := &couponv1.IssueResponse{BatchNo: m.GetBatchNo(), Issued: uint32(len(issue.Coupons))}
	answer.Coupons = encodeCoupons(issue.Coupons, issue.At)
	if op := issue.Operation; op != nil {
		answer.Operation, answer.Issued = encodeOperation(*op), uint32(op.Succeeded)
		status(ctx, true, 202, operationPath(*op))
	}
	return answer, nil
}

func (c campaigns) GetOperation(ctx context.Context, m *couponv1.GetOperationRequest) (*couponv1.Operation, error) {
	op, err := c.svc.Operation(ctx, m.GetId())
	return encodeOperation(op), c.fail(ctx, err)
}

func operationPath(op coupon.Operation) string {
	return "/v1/operations/" + strconv.FormatInt(op.ID, 10)
}

// status has the REST path answer with another status than 200 and say where
// the result is.
func status(ctx context.Context, ok bool, code int, location string) {
	info, inCall := connect.CallInfoForHandlerContext(ctx)
	if ok && inCall {
		info.ResponseHeader().Set(statusHeader, strconv.Itoa(code))
		info.ResponseHeader().Set("Location", location)
	}
}
