package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tallystick/tallystick/internal/access"
	"github.com/tallystick/tallystick/internal/observe"
	"github.com/tallystick/tallystick/internal/watched"
)

// A podDoor is what a pod serves with.
type podDoor struct {
	options     *serveOptions
	tokens      *watched.File[access.List]
	certificate *watched.File[tls.Certificate] // nil: clear text
	log         *slog.Logger
}

// door returns what --listen asks for, nil if it asks for nothing. Whatever
// keeps the pod from serving is found out here, before it opens anything.
func (o *serveOptions) door(log *slog.Logger) (*podDoor, error) {
	if o.listen == "" {
		return nil, nil
	}
	d := &podDoor{options: o, log: log}
	var err error
	if d.tokens, err = o.tokens(access.Parse); err != nil {
		return nil, err
	}
	if d.certificate, err = o.certificate(); err != nil {
		return nil, err
	}
	if o.insecureNoTokens && d.tokens.Get().Exists {
		log.Warn("tokens are not asked for, although there are some: --insecure-no-tokens is set")
	}
	return d, o.free()
}

// serve serves a pod's metrics and service until the function it returns is
// called. Without a door it serves nothing.
func (d *podDoor) serve(ctx context.Context, j *job) (stop func(), err error) {
	if d == nil {
		return func() {}, nil
	}
	listener, err := d.options.bind()
	if err != nil {
		return nil, err
	}
	server := newHTTP(d.pages(ctx, j), d.log)
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { d.tokens.Run(life, logChange(d.log, "tokens")) })
	if d.certificate != nil {
		background.Go(func() { d.certificate.Run(life, logChange(d.log, "certificate")) })
	}
	background.Go(func() {
		if err := serveOn(server, listener, d.certificate); err != nil {
			d.log.Error("not served any more", "error", err)
		}
	})
	d.log.Info("serving", "url", serverURL(*d.options, listener.Addr()))
	return func() {
		draining, done := lastWords(ctx)
		defer done()
		if server.Shutdown(draining) != nil {
			server.Close()
		}
		cancel()
		background.Wait()
	}, nil
}

// pages returns what a pod serves.
func (d *podDoor) pages(ctx context.Context, j *job) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), migrationMetrics(ctx, j.local))
	guard := newGuard(*d.options, d.tokens, registry)
	guard.log = d.log
	observer := observe.New(observe.Options{Metrics: registry, Logger: d.log, Caller: tokenOf, Changes: changesMigration})
	path, rpc := serveMigration(j.local, observer.Handler()...)

	mux := http.NewServeMux()
	mux.Handle(path, guard.calls(rpc))
	mux.Handle("GET /metrics", guard.pages(metricsPage(registry, d.log)))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if _, err := j.local.Status(r.Context()); err != nil || ctx.Err() != nil {
			http.Error(w, "the state cannot be read, or the pod is stopping", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
