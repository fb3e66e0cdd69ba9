package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/otelconnect"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// flushTimeout bounds how long a server that stops waits for the collector.
const flushTimeout = 2 * time.Second

// tracing sends a span for each call to a collector. The zero value sends none.
type tracing struct {
	provider *trace.TracerProvider
	calls    []connect.HandlerOption // what makes a service's calls traced, as parts of their callers' traces
}

// wanted reports whether the environment asks for traces, as OpenTelemetry
// spells that; and an error if it asks for what this program cannot do.
func wanted(env func(string) string) (bool, error) {
	set := env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	switch exporter := env("OTEL_TRACES_EXPORTER"); {
	case strings.EqualFold(env("OTEL_SDK_DISABLED"), "true"), exporter == "none", exporter == "" && !set:
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, failed(`set it to "otlp" or "none"`, "OTEL_TRACES_EXPORTER is %q", exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := env(name); p != "" && p != "http/protobuf" {
			return false, failed(`set it to "http/protobuf", which collectors take at port 4318`, "%s is %q", name, p)
		}
	}
	return true, nil
}

// openTracing begins to send spans if the environment asks for them. The
// environment configures it all; at most 2,048 spans wait, or as many as
// OTEL_BSP_MAX_QUEUE_SIZE says, and those beyond are dropped: no call ever
// waits for the collector.
func openTracing(ctx context.Context, log *slog.Logger) (*tracing, error) {
	if on, err := wanted(os.Getenv); !on {
		return &tracing{}, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, failed("check the variables that begin with OTEL_", "cannot send traces: %v", err)
	}
	otel.SetErrorHandler(seldom(log))
	own, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "tallystick"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // the last counts
	if err != nil {
		return nil, failed("check OTEL_RESOURCE_ATTRIBUTES", "cannot send traces: %v", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(own))
	traced, err := otelconnect.NewInterceptor(otelconnect.WithTracerProvider(provider), otelconnect.WithPropagator(propagation.TraceContext{}),
		otelconnect.WithTrustRemote(), otelconnect.WithoutMetrics(), otelconnect.WithoutServerPeerAttributes(), otelconnect.WithoutTraceEvents())
	if err != nil {
		return nil, err
	}
	return &tracing{provider, []connect.HandlerOption{connect.WithInterceptors(traced)}}, nil
}

// seldom logs what goes wrong with the collector once a minute.
func seldom(log *slog.Logger) otel.ErrorHandler {
	var next atomic.Int64
	return otel.ErrorHandlerFunc(func(err error) {
		now := time.Now().Unix()
		if due := next.Load(); now >= due && next.CompareAndSwap(due, now+60) {
			log.Warn("traces not sent", "error", err)
		}
	})
}

// close sends what still waits, as far as that takes no longer than
// flushTimeout.
func (t *tracing) close(log *slog.Logger) {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		log.Warn("the last traces were not sent", "error", err)
	}
}
