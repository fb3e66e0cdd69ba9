package main

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

// An observer counts and times calls, logs those that change something, and
// contains their panics.
type observer struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	log     *slog.Logger
}

func newObserver(r prometheus.Registerer, log *slog.Logger) *observer {
	o := &observer{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tallystick_rpc_calls_total", Help: "Calls answered, by method and status.",
		}, []string{"method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tallystick_rpc_duration_seconds", Help: "Time to answer a call, by method.",
			Buckets: []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10},
		}, []string{"method"}),
		log: log,
	}
	r.MustRegister(o.calls, o.seconds)
	return o
}

func (o *observer) options() []connect.HandlerOption {
	return []connect.HandlerOption{
		connect.WithInterceptors(connect.UnaryInterceptorFunc(o.observe)),
		connect.WithRecover(o.recovered),
	}
}

func (o *observer) observe(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		begin := time.Now()
		res, err := next(ctx, req)
		method, code := path.Base(req.Spec().Procedure), "ok"
		if err != nil {
			code = connect.CodeOf(err).String()
		}
		o.calls.WithLabelValues(method, code).Inc()
		o.seconds.WithLabelValues(method).Observe(time.Since(begin).Seconds())
		if changes(method) {
			o.log.Info("change", "method", method, "code", code, "token", tokenOf(ctx), "peer", req.Peer().Addr)
		}
		return res, err
	}
}

// changes reports whether a method manages sequences, which is worth a line.
func changes(method string) bool {
	switch method {
	case "Create", "Alter", "Delete", "Restart":
		return true
	}
	return false
}

// recovered turns a panic into an error of the one call it happened in.
func (o *observer) recovered(_ context.Context, spec connect.Spec, _ http.Header, cause any) error {
	o.log.Error("panic", "procedure", spec.Procedure, "panic", cause, "stack", string(debug.Stack()))
	return connect.NewError(connect.CodeInternal, errors.New("the server has a defect; its log tells more"))
}
