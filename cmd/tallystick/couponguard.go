package main

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/internal/access"
)

// coupons guards the paths of coupons. Any token gets in here; which scope a
// call needs is known when its procedure is, in scoped.
func (g *guard) coupons(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, refusal := g.admit(r, access.Any)
		if refusal != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuseCoupons(w, r, &coupon.Refusal{Code: couponUnauthenticated, Message: refusal.Message + " (" + refusal.Remedy + ")"})
			return
		}
		if !g.serve(next, w, r) {
			refuseCoupons(w, r, &coupon.Refusal{Code: couponRateLimited, Retryable: true, Message: "too many requests are under way: try again"})
		}
	})
}

// scoped refuses calls of tokens whose scope does not reach.
func (g *guard) scoped(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		token, given := ctx.Value(tokenKey{}).(access.Token)
		needed := couponScope(req.Spec().Procedure)
		if given && !token.Scope.Covers(needed) {
			g.denied.WithLabelValues("scope").Inc()
			return nil, couponRefusal(&coupon.Refusal{
				Code:    couponPermissionDenied,
				Message: "this needs a token of scope " + string(needed) + " (`tallystick token create --scope " + string(needed) + "` makes one)",
			})
		}
		return next(ctx, req)
	}
}
