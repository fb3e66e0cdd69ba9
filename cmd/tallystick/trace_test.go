package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spans collects what a server sends to the OpenTelemetry collector it serves
// as.
type spans struct {
	mu  sync.Mutex
	all []string // "service: name of the span, trace id"
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var batch collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &batch) != nil {
		http.Error(w, "not traces", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range batch.GetResourceSpans() {
		service := ""
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range of.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.all = append(s.all, fmt.Sprintf("%s: %s, %x", service, span.GetName(), span.GetTraceId()))
			}
		}
	}
}

func (s *spans) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.all, "\n")
}

// traced starts a server with env and waits until it is ready.
func traced(t *testing.T, env ...string) *process {
	t.Helper()
	p := launch(t, env)
	ready := p.out.wait(t, p.done, regexp.MustCompile(`is ready at (\S+),`))
	if ready == nil {
		t.Fatalf("the server ended: %s%s", p.out, p.err)
	}
	p.url = ready[1]
	return p
}

const callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

// leaseIn leases as a part of callersTrace.
func leaseIn(t *testing.T, p *process) {
	t.Helper()
	req, err := http.NewRequest("POST", p.url+"/tallystick.sequence.v1.SequenceService/Lease", strings.NewReader(`{"items":[{"name":"nobody","count":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", "00-"+callersTrace+"-00f067aa0ba902b7-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
}

// TestCallsAreTraced: each call is a span of its caller's trace. The server
// sends in seconds, so these come with its end.
func TestCallsAreTraced(t *testing.T) {
	for service, env := range map[string][]string{"tallystick": nil, "numbers": {"OTEL_SERVICE_NAME=numbers"}} {
		got := &spans{}
		server := httptest.NewServer(got)
		p := traced(t, append(env, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL)...)
		leaseIn(t, p)
		if code := p.stop(t); code != 0 {
			t.Errorf("exit code %d: %s", code, p.err)
		}
		server.Close()
		if want := service + ": tallystick.sequence.v1.SequenceService/Lease, " + callersTrace; got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestSilentCollectorHoldsNobodyUp: neither calls nor, for long, the end.
func TestSilentCollectorHoldsNobodyUp(t *testing.T) {
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	defer server.Close()
	defer close(silent)
	p := traced(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=10")
	begin := time.Now()
	for range 100 {
		leaseIn(t, p)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("100 calls took %v", took)
	}
	begin = time.Now()
	if code := p.stop(t); code != 0 || time.Since(begin) > 10*time.Second {
		t.Errorf("exit code %d after %v", code, time.Since(begin))
	}
	if !strings.Contains(p.err.String(), "the last traces were not sent") {
		t.Errorf("it says %s", p.err)
	}
}

func TestTracesThatCannotBeSentAreRefused(t *testing.T) {
	for variable, remedy := range map[string]string{
		"OTEL_TRACES_EXPORTER=zipkin":                                `set it to \"otlp\"`,
		"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc": "4318",
	} {
		p := launch(t, strings.Fields(variable))
		if code := p.wait(t); code == 0 || !strings.Contains(p.err.String(), strings.ReplaceAll(remedy, `\`, "")) {
			t.Errorf("%s: exit code %d: %s", variable, code, p.err)
		}
	}
}
