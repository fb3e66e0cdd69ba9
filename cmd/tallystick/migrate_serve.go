package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tallystick/tallystick/internal/access"
	"github.com/tallystick/tallystick/internal/observe"
	"github.com/tallystick/tallystick/internal/watched"
)

// serveMigration serves a pod's metrics and service, if --listen asks for it,
// until the function it returns is called.
func (c *cli) serveMigration(ctx context.Context, f *runFlags, j *job, log *slog.Logger) (stop func(), err error) {
	if f.serve.listen == "" {
		return func() {}, nil
	}
	tokens, err := f.serve.tokens(access.Parse)
	if err != nil {
		return nil, err
	}
	certificate, err := f.serve.certificate()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", f.serve.listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", f.serve.listen, err)
	}
	server := newHTTP(podPages(ctx, f.serve, j, tokens, log), log)
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { tokens.Run(life, logChange(log, "tokens")) })
	if certificate != nil {
		background.Go(func() { certificate.Run(life, logChange(log, "certificate")) })
	}
	background.Go(func() {
		if err := serveOn(server, listener, certificate); err != nil {
			log.Error("not served any more", "error", err)
		}
	})
	log.Info("serving", "url", serverURL(f.serve, listener.Addr()))
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

// podPages returns what a pod serves.
func podPages(ctx context.Context, o serveOptions, j *job, tokens *watched.File[access.List], log *slog.Logger) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), migrationMetrics(ctx, j.local))
	guard := newGuard(o, tokens, registry)
	observer := observe.New(observe.Options{Metrics: registry, Logger: log, Caller: tokenOf, Changes: changesMigration})
	path, rpc := serveMigration(j.local, observer.Handler()...)

	mux := http.NewServeMux()
	mux.Handle(path, guard.calls(rpc))
	mux.Handle("GET /metrics", guard.pages(metricsPage(registry, log)))
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
