// Package observe watches the calls a server answers: it counts and times them,
// logs those that change something, and contains their panics.
package observe

import (
	"context"
	"errors"
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
}

// Options says what an [Observer] cannot know. All fields are needed.
type Options struct {
	Metrics prometheus.Registerer
	Logger  *slog.Logger
	Caller  func(context.Context) string // names who makes a call, for the log
	Changes func(procedure string) bool  // whether a procedure changes something that is worth a line in the log
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
		log: opts.Logger, caller: opts.Caller, changes: opts.Changes,
	}
	opts.Metrics.MustRegister(o.calls, o.seconds)
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
			o.log.Info("change", "method", method, "code", code, "token", o.caller(ctx), "peer", req.Peer().Addr)
		}
		return res, err
	}
}

// recovered turns a panic into an error of the one call it happened in.
func (o *Observer) recovered(_ context.Context, spec connect.Spec, _ http.Header, cause any) error {
	o.log.Error("panic", "procedure", spec.Procedure, "panic", cause, "stack", string(debug.Stack()))
	return connect.NewError(connect.CodeInternal, errors.New("the server has a defect; its log tells more"))
}
