package migrrpc

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/internal/rpcwire"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migrrpc/migratev1"
)

// DefaultTimeout is the deadline of a call whose context has none.
const DefaultTimeout = 30 * time.Second

// Options configures a [Client].
type Options struct {
	Token   string        // bearer token; "": none
	CAFile  string        // PEM file of the authorities to trust; "": the system's
	Timeout time.Duration // of a call whose context has no deadline; 0: DefaultTimeout

	// InsecureNoTLS lets the token leave this machine in clear text, where
	// the whole network can read it.
	InsecureNoTLS bool
}

// A Client asks one pod. It implements [Service].
type Client struct {
	url     string
	rpc     migratev1.MigrationServiceClient
	timeout time.Duration
	http    *http.Client
}

var _ Service = (*Client)(nil)

// Dial returns a client of the pod at url: http://HOST:PORT speaks HTTP/2 in
// clear text, https://HOST:PORT TLS. It does not connect yet.
//
// A token is not sent in clear text to another machine unless the options say
// so: that fails with an [Error] of code INVALID_ARGUMENT.
func Dial(url string, opts Options) (*Client, error) {
	base, err := rpcwire.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("migrrpc: %w", err)
	}
	if opts.Token != "" && !opts.InsecureNoTLS && rpcwire.Readable(base) {
		return nil, &Error{connect.CodeInvalidArgument, "server", fmt.Sprintf("the token would go to %s in clear text", base),
			"use https://, or allow it by Options.InsecureNoTLS"}
	}
	client, err := rpcwire.HTTPClient(opts.CAFile)
	if err != nil {
		return nil, fmt.Errorf("migrrpc: %w", err)
	}
	c := &Client{url: base, timeout: opts.Timeout, http: client}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	c.rpc = migratev1.NewMigrationServiceClient(client, base, rpcwire.ClientOptions(opts.Token)...)
	return c, nil
}

// Close closes the client's idle connections. The client stays usable.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// call makes one call and decodes its answer.
func call[Req, Res, T any](ctx context.Context, c *Client, rpc func(context.Context, *Req) (*Res, error), req *Req, decode func(*Res) T) (T, error) {
	ctx, cancel := rpcwire.Deadline(ctx, c.timeout)
	defer cancel()
	res, err := rpc(ctx, req)
	if err != nil {
		var none T
		return none, decodeFailure(c.url, err)
	}
	return decode(res), nil
}

// Status implements [Service].
func (c *Client) Status(ctx context.Context) (migrate.Report, error) {
	return call(ctx, c, c.rpc.Status, &migratev1.StatusRequest{}, decodeReport)
}

// Plan implements [Service].
func (c *Client) Plan(ctx context.Context) (Outlook, error) {
	return call(ctx, c, c.rpc.Plan, &migratev1.PlanRequest{}, decodeOutlook)
}

// Start implements [Service].
func (c *Client) Start(ctx context.Context) (migrate.Status, error) {
	return call(ctx, c, c.rpc.Start, &migratev1.StartRequest{}, func(m *migratev1.StartResponse) migrate.Status {
		return migrate.Status(m.GetStatus())
	})
}

// Stop implements [Service].
func (c *Client) Stop(ctx context.Context) (migrate.Status, error) {
	return call(ctx, c, c.rpc.Stop, &migratev1.StopRequest{}, func(m *migratev1.StopResponse) migrate.Status {
		return migrate.Status(m.GetStatus())
	})
}

// Verify implements [Service].
func (c *Client) Verify(ctx context.Context, req VerifyRequest) (Verification, error) {
	return call(ctx, c, c.rpc.Verify, &migratev1.VerifyRequest{
		VerificationId: req.ID, Mode: req.Mode, Only: req.Only, Repair: req.Repair,
	}, decodeVerification)
}

// Ledger implements [Service]. It returns up to 1,000 lines at once.
func (c *Client) Ledger(ctx context.Context, from int64, limit int) ([]migrate.LedgerLine, error) {
	req := &migratev1.ReportRequest{PageSize: uint32(min(max(limit, 1), maxPage)), PageToken: strconv.FormatInt(from, 10)}
	return call(ctx, c, c.rpc.Report, req, func(m *migratev1.ReportResponse) []migrate.LedgerLine {
		lines := make([]migrate.LedgerLine, len(m.GetLines()))
		for i, l := range m.GetLines() {
			lines[i] = decodeLine(l)
		}
		return lines
	})
}

// Replay implements [Service].
func (c *Client) Replay(ctx context.Context) (settled, left int, err error) {
	m, err := call(ctx, c, c.rpc.Replay, &migratev1.ReplayRequest{}, func(m *migratev1.ReplayResponse) *migratev1.ReplayResponse { return m })
	return int(m.GetSettled()), int(m.GetLeft()), err
}
