package couponrpc

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc/couponv1"
	"github.com/tallystick/tallystick/internal/rpcwire"
)

// DefaultTimeout is the deadline of a call whose context has none.
const DefaultTimeout = 10 * time.Second

// ClientOptions configures a [Client].
type ClientOptions struct {
	Token   string        // bearer token; "": none
	CAFile  string        // PEM file of the authorities to trust; "": the system's
	Timeout time.Duration // of a call whose context has no deadline; 0: DefaultTimeout

	// InsecureNoTLS lets the token leave this machine in clear text, where
	// the whole network can read it.
	InsecureNoTLS bool
}

// A Client asks a server. Its calls fail with a [coupon.Refusal] as those of a
// [coupon.Service] do. It repeats none. A call without a whole answer, whose outcome
// is unknown, is [coupon.ErrShardUnavailable]: it may be repeated with the same
// business number if that is retryable, as it is but for campaigns that are created
// without a key. It is safe for concurrent use.
type Client struct {
	url       string
	campaigns couponv1.CampaignServiceClient
	coupons   couponv1.CouponServiceClient
	timeout   time.Duration
	http      *http.Client
}

// Dial returns a client of the server at url: http://HOST:PORT speaks HTTP/2 in
// clear text, https://HOST:PORT TLS. It does not connect yet. A token is not sent
// in clear text to another machine unless the options say so.
func Dial(url string, o ClientOptions) (*Client, error) {
	base, err := rpcwire.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("couponrpc: %w", err)
	}
	if o.Token != "" && !o.InsecureNoTLS && rpcwire.Readable(base) {
		return nil, invalid("server", "the token would go to %s in clear text: use https://, or allow it by Options.InsecureNoTLS", base)
	}
	client, err := rpcwire.HTTPClient(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("couponrpc: %w", err)
	}
	options := rpcwire.ClientOptions(o.Token)
	c := &Client{url: base, timeout: o.Timeout, http: client}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	c.campaigns = couponv1.NewCampaignServiceClient(watcher{client}, base, options...)
	c.coupons = couponv1.NewCouponServiceClient(watcher{client}, base, options...)
	return c, nil
}

// Close closes the client's idle connections. The client stays usable.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// ask makes one call, which may be repeated, and decodes its answer.
func ask[Req, Res, T any](ctx context.Context, c *Client, rpc func(context.Context, *Req) (*Res, error), req *Req, decode func(*Res) (T, error)) (T, error) {
	return askFor(ctx, c, repeatable, rpc, req, decode)
}

// askFor makes one call and decodes its answer.
func askFor[Req, Res, T any](ctx context.Context, c *Client, e effect, rpc func(context.Context, *Req) (*Res, error), req *Req, decode func(*Res) (T, error)) (T, error) {
	ctx, cancel := rpcwire.Deadline(ctx, c.timeout)
	defer cancel()
	ctx, p := watch(ctx)
	res, err := rpc(ctx, req)
	if err != nil {
		var none T
		return none, p.refusal(c.url, e, req, err)
	}
	return decode(res)
}

// CreateCampaign adds a campaign; see [coupon.Service.CreateCampaign].
func (c *Client) CreateCampaign(ctx context.Context, asked coupon.Campaign, key string) (coupon.Campaign, error) {
	if key != "" {
		var info connect.CallInfo
		ctx, info = connect.NewClientContext(ctx)
		info.RequestHeader().Set("Idempotency-Key", key)
	}
	req, err := encodeCreate(asked)
	if err != nil {
		return coupon.Campaign{}, err
	}
	return askFor(ctx, c, effect(key != ""), c.campaigns.Create, req, decodeCampaign)
}

// Campaign returns a campaign.
func (c *Client) Campaign(ctx context.Context, id int64) (coupon.Campaign, error) {
	return ask(ctx, c, c.campaigns.Get, &couponv1.GetRequest{Id: id}, decodeCampaign)
}

// Campaigns returns a page of campaigns, and the token of the next; "" at the end.
func (c *Client) Campaigns(ctx context.Context, n int, token string) ([]coupon.Campaign, string, error) {
	var next string
	all, err := ask(ctx, c, c.campaigns.List, &couponv1.ListRequest{PageSize: uint32(n), PageToken: token},
		func(m *couponv1.ListResponse) ([]coupon.Campaign, error) {
			next = m.GetNextPageToken()
			return decodeAll(m.GetCampaigns(), decodeCampaign)
		})
	return all, next, err
}

// MoveCampaign gives a campaign another state: active, paused or ended.
func (c *Client) MoveCampaign(ctx context.Context, id int64, to coupon.CampaignState) (coupon.Campaign, error) {
	switch to {
	case coupon.Paused:
		return ask(ctx, c, c.campaigns.Pause, &couponv1.PauseRequest{Id: id}, decodeCampaign)
	case coupon.Active:
		return ask(ctx, c, c.campaigns.Resume, &couponv1.ResumeRequest{Id: id}, decodeCampaign)
	case coupon.Ended:
		return ask(ctx, c, c.campaigns.End, &couponv1.EndRequest{Id: id}, decodeCampaign)
	}
	return coupon.Campaign{}, invalid("state", "a campaign cannot be made %s", to)
}

// Generate begins to make a campaign's coupons.
func (c *Client) Generate(ctx context.Context, campaign int64) (coupon.Operation, error) {
	return ask(ctx, c, c.campaigns.Generate, &couponv1.GenerateRequest{Id: campaign}, decodeOperation)
}

// Operation tells how far long work has come.
func (c *Client) Operation(ctx context.Context, id int64) (coupon.Operation, error) {
	return ask(ctx, c, c.campaigns.GetOperation, &couponv1.GetOperationRequest{Id: id}, decodeOperation)
}

// Issue gives coupons to an order; see [coupon.Service.Issue].
func (c *Client) Issue(ctx context.Context, r coupon.IssueRequest) (coupon.Issue, error) {
	if r.Count < 0 || r.Count > coupon.MaxIssue { // the wire has fewer bits
		return coupon.Issue{}, invalid("count", "count is %d: want 1 to %d", r.Count, coupon.MaxIssue)
	}
	return ask(ctx, c, c.campaigns.Issue, &couponv1.IssueRequest{
		Id: r.Campaign, BatchNo: r.Batch, OrderNo: r.Order, Count: uint32(r.Count), UserId: r.User,
	}, decodeIssue)
}

// Claim gives a user a coupon of a campaign; see [coupon.Service.Claim].
func (c *Client) Claim(ctx context.Context, campaign int64, call coupon.Call) (coupon.Result, error) {
	return ask(ctx, c, c.coupons.Claim, &couponv1.ClaimRequest{
		CampaignId: campaign, UserId: call.User, RequestNo: call.Request,
	}, decodeResult)
}

// A Ref names a coupon as people do: by its id or, if that is 0, its code.
type Ref struct {
	ID   int64
	Code string
}

// Bind gives a bearer coupon to a user; see [coupon.Service.Bind].
func (c *Client) Bind(ctx context.Context, r Ref, call coupon.Call) (coupon.Result, error) {
	return ask(ctx, c, c.coupons.Bind, &couponv1.BindRequest{
		Id: r.ID, Code: r.Code, UserId: call.User, RequestNo: call.Request,
	}, decodeResult)
}

// Reserve holds a coupon for an order; see [coupon.Service.Reserve]. A ttl of 0 is
// the default.
func (c *Client) Reserve(ctx context.Context, r Ref, call coupon.Call, ttl time.Duration) (coupon.Result, error) {
	return ask(ctx, c, c.coupons.Reserve, &couponv1.ReserveRequest{
		Id: r.ID, Code: r.Code, UserId: call.User, OrderNo: call.Order, TtlSeconds: uint32(ttl / time.Second),
	}, decodeResult)
}

// Redeem uses a coupon for an order; see [coupon.Service.Redeem].
func (c *Client) Redeem(ctx context.Context, r Ref, call coupon.Call) (coupon.Result, error) {
	return ask(ctx, c, c.coupons.Redeem, &couponv1.RedeemRequest{
		Id: r.ID, Code: r.Code, UserId: call.User, OrderNo: call.Order,
	}, decodeResult)
}

// Release gives up an order's hold; see [coupon.Service.Release].
func (c *Client) Release(ctx context.Context, r Ref, call coupon.Call) (coupon.Result, error) {
	return ask(ctx, c, c.coupons.Release, &couponv1.ReleaseRequest{
		Id: r.ID, Code: r.Code, UserId: call.User, OrderNo: call.Order,
	}, decodeResult)
}

// Void takes a redemption back; see [coupon.Service.Void].
func (c *Client) Void(ctx context.Context, id coupon.ID, call coupon.Call) (coupon.Result, error) {
	return ask(ctx, c, c.coupons.Void, &couponv1.VoidRequest{Id: int64(id), OrderNo: call.Order, RequestNo: call.Request}, decodeResult)
}

// Get returns a coupon; see [coupon.Service.Get].
func (c *Client) Get(ctx context.Context, r Ref, user string) (coupon.Coupon, error) {
	if r.ID != 0 {
		return ask(ctx, c, c.coupons.GetCoupon, &couponv1.GetCouponRequest{Id: r.ID, UserId: user}, decodeCoupon)
	}
	return ask(ctx, c, c.coupons.GetByCode, &couponv1.GetByCodeRequest{Code: r.Code, UserId: user}, decodeCoupon)
}

// History returns what happened to a coupon.
func (c *Client) History(ctx context.Context, id coupon.ID) ([]coupon.Event, error) {
	return ask(ctx, c, c.coupons.History, &couponv1.HistoryRequest{Id: int64(id)},
		func(m *couponv1.HistoryResponse) ([]coupon.Event, error) {
			return decodeAll(m.GetEvents(), decodeEvent)
		})
}

// Wallet returns a page of a user's coupons, and the token of the next; "" at the
// end. A user's After is not used: the token is where a page begins.
func (c *Client) Wallet(ctx context.Context, q coupon.WalletQuery, token string) ([]coupon.Coupon, string, error) {
	req := &couponv1.WalletRequest{UserId: q.User, Fresh: q.Fresh, PageSize: uint32(q.Size), PageToken: token}
	for _, s := range q.Status {
		req.Status = append(req.Status, s.String())
	}
	var next string
	all, err := ask(ctx, c, c.coupons.Wallet, req, func(m *couponv1.WalletResponse) ([]coupon.Coupon, error) {
		next = m.GetNextPageToken()
		return decodeAll(m.GetCoupons(), decodeCoupon)
	})
	return all, next, err
}
