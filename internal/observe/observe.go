// Package observe watches the calls a server answers: it counts and times them,
// logs those that change something, and contains their panics.
package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
)

// An Observer watches the calls of any number of services.
type Observer struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	log     *slog.Logger
	caller  func(context.Context) string
	changes func(procedure string) bool
	parts   func(request, answer any) []Change
	changed *prometheus.CounterVec
}

// A Change is one thing that a call created, changed or deleted, or was to.
type Change struct {
	Name string
	Code string // why it was not done, in lower case as connect spells codes; "": as the call's
}

// maxNamed bounds how many names one line of the log has.
const maxNamed = 20

// Options says what an [Observer] cannot know. All fields but Parts are needed.
type Options struct {
	Metrics prometheus.Registerer
	Logger  *slog.Logger
	Caller  func(context.Context) string // names who makes a call, for the log
	Changes func(procedure string) bool  // whether a procedure changes something that is worth a line in the log

	// Parts returns what a call of such a procedure was to change. answer is
	// nil if the call failed. nil: calls have no parts.
	Parts func(request, answer any) []Change
}

// New returns an observer and registers its metrics. It panics if they are
// registered already.
func New(opts Options) *Observer {
	o := &Observer{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tallystick_rpc_calls_total", Help: "Calls answered, by method and status.",
		}, []string{"method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tallystick_rpc_duration_seconds", Help: "Time to answer a call, by method.",
			Buckets: []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10},
		}, []string{"method"}),
		changed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tallystick_rpc_changes_total", Help: "Things that calls created, changed or deleted, by method and status.",
		}, []string{"method", "code"}),
		log: opts.Logger, caller: opts.Caller, changes: opts.Changes, parts: opts.Parts,
	}
	opts.Metrics.MustRegister(o.calls, o.seconds, o.changed)
	return o
}

// Handler returns the options that make a service observed.
func (o *Observer) Handler() []connect.HandlerOption {
	return []connect.HandlerOption{
		connect.WithInterceptors(connect.UnaryInterceptorFunc(o.observe)),
		connect.WithRecover(o.recovered),
	}
}

func (o *Observer) observe(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		begin := time.Now()
		res, err := next(ctx, req)
		method, code := path.Base(req.Spec().Procedure), "ok"
		if err != nil {
			code = connect.CodeOf(err).String()
		}
		o.calls.WithLabelValues(method, code).Inc()
		o.seconds.WithLabelValues(method).Observe(time.Since(begin).Seconds())
		if o.changes(req.Spec().Procedure) {
			o.record(ctx, req, res, method, code)
		}
		return res, err
	}
}

// record counts the changes of a call and logs them in one line: which were
// done, and which were not and why.
func (o *Observer) record(ctx context.Context, req connect.AnyRequest, res connect.AnyResponse, method, code string) {
	line := []any{"method", method, "code", code, "token", o.caller(ctx), "peer", req.Peer().Addr}
	if o.parts != nil {
		var answer any
		if code == "ok" {
			answer = res.Any()
		}
		line = append(line, o.count(method, code, o.parts(req.Any(), answer))...)
	}
	o.log.Info("change", line...)
}

// count counts the parts of a call and returns what the log says of them.
func (o *Observer) count(method, code string, parts []Change) []any {
	var done, refused []string
	for _, c := range parts {
		own := cmp.Or(c.Code, code)
		o.changed.WithLabelValues(method, own).Inc()
		if own == "ok" {
			done = append(done, c.Name)
			continue
		}
		refused = append(refused, c.Name+": "+own)
	}
	said := []any{"done", len(done), "names", bounded(done)}
	if len(refused) > 0 {
		said = append(said, "refused", len(refused), "refusals", bounded(refused))
	}
	return said
}

// bounded returns the first of names and how many more there are.
func bounded(names []string) []string {
	if len(names) <= maxNamed {
		return names
	}
	return append(names[:maxNamed:maxNamed], fmt.Sprintf("and %d more", len(names)-maxNamed))
}

// recovered turns a panic into an error of the one call it happened in.
func (o *Observer) recovered(_ context.Context, spec connect.Spec, _ http.Header, cause any) error {
	o.log.Error("panic", "procedure", spec.Procedure, "panic", cause, "stack", string(debug.Stack()))
	return connect.NewError(connect.CodeInternal, errors.New("the server has a defect; its log tells more"))
}
