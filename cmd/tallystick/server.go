package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tallystick/tallystick/internal/access"
	"github.com/tallystick/tallystick/internal/observe"
	"github.com/tallystick/tallystick/internal/watched"
	"github.com/tallystick/tallystick/sequence"
)

// Limits of a connection.
const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 30 * time.Second // to read a request, and to answer it
	idleTimeout    = 2 * time.Minute
	maxHeader      = 32 << 10 // bytes
)

// A server serves one sequence service over HTTP.
type server struct {
	http     *http.Server
	service  *sequence.Service
	coupons  *platform // nil: none
	tokens   *watched.File[access.List]
	log      *slog.Logger
	drain    time.Duration
	stopping sync.Once
	stopped  chan struct{} // closed when stopping begins
}

func newServer(o serveOptions, service *sequence.Service, coupons *platform, tokens *watched.File[access.List], traces *tracing, log *slog.Logger) (*server, error) {
	s := &server{service: service, coupons: coupons, tokens: tokens, log: log, drain: o.drainTimeout, stopped: make(chan struct{})}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), sequenceMetrics(service))
	guard := newGuard(o, tokens, registry)
	guard.log = log
	observer := observe.New(observe.Options{Metrics: registry, Logger: log, Caller: tokenOf, Changes: changesSequences, Parts: changedSequences})
	path, rpc := serveSequences(service, slices.Concat(traces.calls, observer.Handler())...)

	mux := http.NewServeMux()
	mux.Handle(path, guard.calls(rpc))
	mux.Handle("GET /metrics", guard.pages(metricsPage(registry, log)))
	mux.HandleFunc("GET /{$}", index(path))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)

	if coupons != nil {
		registry.MustRegister(couponMetrics(coupons))
		handler, err := serveCoupons(coupons, log, append(traces.calls, connect.WithInterceptors(connect.UnaryInterceptorFunc(guard.scoped)))...)
		if err != nil {
			return nil, err
		}
		for _, path := range couponPaths {
			mux.Handle(path, guard.coupons(handler))
		}
	}
	s.http = newHTTP(mux, log)
	return s, nil
}

// index says what is where, to people who look with a browser or curl.
func index(service string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		fmt.Fprintf(w, `Tallystick %[1]s

POST %[2]sLease
     takes values, by gRPC, gRPC-Web or JSON; beside it Return, Create, Alter, Get, List, Delete and Restart:
     curl -H 'Content-Type: application/json' -d '{"items":[{"name":"orders_seq","count":5}]}' %[3]s%[2]sLease
GET  /metrics  figures for Prometheus
GET  /livez    whether the process is alive
GET  /readyz   whether it grants values
`, version, service, scheme+"://"+r.Host)
	}
}

// metricsPage returns the page that Prometheus reads.
func metricsPage(registry *prometheus.Registry, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError)})
}

// newHTTP returns an HTTP server with all limits.
func newHTTP(mux http.Handler, log *slog.Logger) *http.Server {
	s := &http.Server{
		Handler:           contained(http.NewCrossOriginProtection().Handler(mux), log),
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      2 * requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// contained logs the panic of one request and ends only that.
func contained(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if cause := recover(); cause != nil && cause != http.ErrAbortHandler {
				log.Error("panic", "path", r.URL.Path, "panic", cause, "stack", string(debug.Stack()))
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// ready answers whether requests should come here.
func (s *server) ready(w http.ResponseWriter, _ *http.Request) {
	err := s.service.Ready()
	select {
	case <-s.stopped:
		err = errors.New("stopping")
	default:
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// run serves until ctx ends, the store is lost or the listener fails, and then
// stops gracefully.
func (s *server) run(ctx context.Context, listener net.Listener, certificate *watched.File[tls.Certificate]) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 3)
	var background sync.WaitGroup
	background.Go(func() { s.tokens.Run(ctx, logChange(s.log, "tokens")) })
	if certificate != nil {
		background.Go(func() { certificate.Run(ctx, logChange(s.log, "certificate")) })
	}
	background.Go(func() {
		if err := s.service.Run(ctx); err != nil {
			ended <- err
		}
	})
	if s.coupons != nil {
		background.Go(func() {
			if err := s.coupons.Run(ctx); err != nil {
				ended <- err
			}
		})
	}
	background.Go(func() { ended <- serveOn(s.http, listener, certificate) })

	var failed error
	select {
	case <-ctx.Done():
	case failed = <-ended:
	}
	s.drainCalls(context.WithoutCancel(ctx))
	cancel()
	background.Wait()
	return errors.Join(failed, s.close(context.WithoutCancel(ctx)))
}

// serveOn serves until the server is shut down.
func serveOn(server *http.Server, listener net.Listener, certificate *watched.File[tls.Certificate]) error {
	var err error
	if certificate != nil {
		server.TLSConfig = &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				c := certificate.Get()
				return &c, nil
			},
		}
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// drainCalls refuses new requests and waits for those under way.
func (s *server) drainCalls(ctx context.Context) {
	s.stopping.Do(func() { close(s.stopped) })
	s.log.Info("stopping", "drain_timeout", s.drain.String())
	ctx, cancel := context.WithTimeout(ctx, s.drain)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("requests were cut off", "error", err)
		s.http.Close()
	}
}

// close ends the coupons, which take numbers from sequences, and then gives the
// sequences' unused values back.
func (s *server) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	var failed error
	if s.coupons != nil {
		failed = s.coupons.Close(ctx)
	}
	err := s.service.Close(ctx)
	st := s.service.Stats()
	s.log.Info("stopped", "granted", st.Granted, "given_back", st.GivenBack, "burned", st.Burned)
	return errors.Join(failed, err)
}

// logChange logs that a file was read again.
func logChange(log *slog.Logger, what string) func(error) {
	return func(err error) {
		if err != nil {
			log.Error(what+" not read again", "error", err)
			return
		}
		log.Info(what + " read again")
	}
}
