package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tallystick/tallystick/internal/access"
	"github.com/tallystick/tallystick/internal/watched"
	"github.com/tallystick/tallystick/sequence"
)

// busyRetry is what a caller is told to wait when too many are at it.
const busyRetry = 200 * time.Millisecond

// A guard decides which requests get through: those of callers with a token
// that reaches, and only so many at once.
type guard struct {
	tokens *watched.File[access.List]
	waived bool // no token is asked for
	limit  chan struct{}
	denied *prometheus.CounterVec
	log    *slog.Logger // of refusals; nil: none

	mu     sync.Mutex
	logged time.Time // when the last refusal was logged
	quiet  int       // refusals since that were not
}

func newGuard(o serveOptions, tokens *watched.File[access.List], r prometheus.Registerer) *guard {
	g := &guard{tokens: tokens, waived: o.insecureNoTokens, limit: make(chan struct{}, o.maxInFlight)}
	g.denied = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tallystick_http_refused_total", Help: "Requests refused before they were read, by reason.",
	}, []string{"reason"})
	r.MustRegister(g.denied)
	return g
}

// refusalInterval is the least time between two refusals in the log: a caller
// that does not give up must not fill it.
const refusalInterval = 10 * time.Second

// logRefused logs a request that was refused for its token, and how many since
// the last were not logged.
func (g *guard) logRefused(r *http.Request, why error, id string) {
	if g.log == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.logged.IsZero() && time.Since(g.logged) < refusalInterval {
		g.quiet++
		return
	}
	g.log.Warn("refused", "reason", why.Error(), "token", id, "path", r.URL.Path, "peer", r.RemoteAddr, "not_logged", g.quiet)
	g.logged, g.quiet = time.Now(), 0
}

type tokenKey struct{}

// tokenOf returns the id of the token a call came with, "" if it needed none.
func tokenOf(ctx context.Context) string {
	token, _ := ctx.Value(tokenKey{}).(access.Token)
	return token.ID
}

// calls guards the procedures of a service.
func (g *guard) calls(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		needed := access.Admin
		if leaseIsEnough(r) {
			needed = access.Lease
		}
		r, refusal := g.admit(r, needed)
		if refusal != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r, refusal)
			return
		}
		if !g.serve(next, w, r) {
			w.Header().Set("Retry-After", "1")
			refuse(w, r, &sequence.Error{
				Code: sequence.CodeUnavailable, Message: "too many requests are under way", Remedy: "try again", RetryAfter: busyRetry,
			})
		}
	})
}

// serve serves a request unless too many are under way, and reports whether it
// did.
func (g *guard) serve(next http.Handler, w http.ResponseWriter, r *http.Request) bool {
	select {
	case g.limit <- struct{}{}:
		defer func() { <-g.limit }()
		next.ServeHTTP(w, r)
		return true
	default:
		g.denied.WithLabelValues("busy").Inc()
		return false
	}
}

// pages guards what people and scrapers read; any token will do.
func (g *guard) pages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, refusal := g.admit(r, access.Any)
		if refusal != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, refusal.Message+" ("+refusal.Remedy+")", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit checks the token of r.
func (g *guard) admit(r *http.Request, needed access.Scope) (*http.Request, *sequence.Error) {
	list := g.tokens.Get()
	if g.waived || !list.Exists {
		return r, nil
	}
	token, err := list.Check(access.Bearer(r.Header.Get("Authorization")), needed)
	switch {
	case errors.Is(err, access.ErrForbidden):
		g.denied.WithLabelValues("scope").Inc()
		g.logRefused(r, err, token.ID)
		return r, &sequence.Error{
			Code: codePermissionDenied, Message: "this needs a token of scope " + string(needed),
			Remedy: "`tallystick token create --scope " + string(needed) + "` makes one",
		}
	case err != nil:
		g.denied.WithLabelValues("token").Inc()
		g.logRefused(r, err, "")
		message := err.Error()
		if errors.Is(err, access.ErrNotKnown) {
			message += ": it was revoked, or is of another server"
		}
		return r, &sequence.Error{
			Code: codeUnauthenticated, Message: message,
			Remedy: "put a token into TALLYSTICK_TOKEN or the Authorization header; `tallystick token create` makes one",
		}
	}
	return r.WithContext(context.WithValue(r.Context(), tokenKey{}, token)), nil
}
