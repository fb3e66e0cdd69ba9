package couponrpc

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/vanguard"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc/couponv1"
	"github.com/tallystick/tallystick/internal/rpcwire"
)

// Bounds of a call.
const (
	maxBody     = 1 << 20                 // bytes of a request
	callTimeout = 1300 * time.Millisecond // of a call for one coupon, which is answered in 1.5 s; a lock is waited for 1 s
	longTimeout = 20 * time.Second        // of a call that works on many
)

// Paths are below which the handler answers.
var Paths = []string{"/v1/", "/" + couponv1.CampaignServiceName + "/", "/" + couponv1.CouponServiceName + "/"}

// Options of the handler.
type Options struct {
	// Parse reads a code as people write it. Required.
	Parse func(text string) (coupon.Code, error)
	// Actor returns who calls, for the ledger. Default: nobody.
	Actor func(ctx context.Context) string
	// Logger is told of errors that are no refusals. Default: silent.
	Logger *slog.Logger
	// Handler are options of both services, like interceptors.
	Handler []connect.HandlerOption
}

// A server translates between the wire and a service.
type server struct {
	svc   *coupon.Service
	parse func(string) (coupon.Code, error)
	actor func(context.Context) string
	log   *slog.Logger
}

// New returns the handler of both services: their procedures below
// /tallystick.coupon.v1. and their REST paths below /v1/.
func New(svc *coupon.Service, o Options) (http.Handler, error) {
	s := &server{svc: svc, parse: o.Parse, actor: o.Actor, log: o.Logger}
	if s.actor == nil {
		s.actor = func(context.Context) string { return "" }
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	options := append(append(rpcwire.HandlerOptions(),
		connect.WithReadMaxBytes(maxBody),
		connect.WithInterceptors(connect.UnaryInterceptorFunc(bounded)),
	), o.Handler...)
	_, campaignHandler := couponv1.NewCampaignServiceHandler(campaigns{s}, options...)
	_, couponHandler := couponv1.NewCouponServiceHandler(coupons{s}, options...)
	transcoder, err := vanguard.NewTranscoder([]*vanguard.Service{
		vanguard.NewService(couponv1.CampaignServiceName, campaignHandler),
		vanguard.NewService(couponv1.CouponServiceName, couponHandler),
	}, vanguard.WithDefaultServiceOptions(vanguard.WithMaxMessageBufferBytes(2*maxBody)),
		vanguard.WithCodec(restCodec), vanguard.WithUnknownHandler(http.HandlerFunc(unknownPath)))
	if err != nil {
		return nil, fmt.Errorf("couponrpc: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/"+couponv1.CampaignServiceName+"/", campaignHandler)
	mux.Handle("/"+couponv1.CouponServiceName+"/", couponHandler)
	mux.HandleFunc("GET /v1/openapi.json", serveOpenAPI)
	mux.Handle("/", rest(transcoder))
	return whole(mux), nil
}

// fail returns err as the wire has it, nil for nil.
func (s *server) fail(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return fail(ctx, s.log, err)
}

// bounded gives every call a deadline, so that a database that hangs is answered
// for in time.
func bounded(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		limit := callTimeout
		if strings.HasPrefix(req.Spec().Procedure, "/"+couponv1.CampaignServiceName+"/") {
			limit = longTimeout
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return next(ctx, req)
	}
}

// Scopes of tokens. Admin may do everything.
const (
	ScopeIssue  = "issue"
	ScopeClaim  = "claim"
	ScopeRedeem = "redeem"
	ScopeAdmin  = "admin"
)

// Scope returns the scope that a procedure needs beside admin.
func Scope(procedure string) string {
	switch procedure {
	case couponv1.CampaignServiceGenerateProcedure, couponv1.CampaignServiceIssueProcedure,
		couponv1.CampaignServiceGetOperationProcedure:
		return ScopeIssue
	case couponv1.CouponServiceClaimProcedure, couponv1.CouponServiceBindProcedure, couponv1.CouponServiceWalletProcedure:
		return ScopeClaim
	}
	if strings.HasPrefix(procedure, "/"+couponv1.CouponServiceName+"/") {
		return ScopeRedeem
	}
	return ScopeAdmin
}
