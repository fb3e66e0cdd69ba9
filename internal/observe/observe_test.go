package observe_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tallystick/tallystick/internal/observe"
)

const procedure = "/test.v1.Service/Do"

// observed serves one procedure and returns a client of it, the log and the
// metrics.
func observed(t *testing.T, do func() error) (*connect.Client[emptypb.Empty, emptypb.Empty], *bytes.Buffer, *prometheus.Registry) {
	t.Helper()
	log, metrics := new(bytes.Buffer), prometheus.NewRegistry()
	o := observe.New(observe.Options{
		Metrics: metrics, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Caller:  func(context.Context) string { return "somebody" },
		Changes: func(p string) bool { return p == procedure },
		Parts: func(_, answer any) []observe.Change {
			if answer == nil {
				return []observe.Change{{Name: "a"}}
			}
			return []observe.Change{{Name: "a"}, {Name: "b", Code: "already_exists"}}
		},
	})
	mux := http.NewServeMux()
	mux.Handle(procedure, connect.NewUnaryHandlerSimple(procedure,
		func(context.Context, *emptypb.Empty) (*emptypb.Empty, error) { return new(emptypb.Empty), do() }, o.Handler()...))
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return connect.NewClient[emptypb.Empty, emptypb.Empty](srv.Client(), srv.URL+procedure), log, metrics
}

func TestCallsAreCountedAndChangesLogged(t *testing.T) {
	errs := []error{nil, nil, connect.NewError(connect.CodeNotFound, nil)}
	client, log, metrics := observed(t, func() error { err := errs[0]; errs = errs[1:]; return err })
	for range 3 {
		_, _ = client.CallUnary(t.Context(), connect.NewRequest(new(emptypb.Empty)))
	}
	want := `
# HELP tallystick_rpc_calls_total Calls answered, by method and status.
# TYPE tallystick_rpc_calls_total counter
tallystick_rpc_calls_total{code="not_found",method="Do"} 1
tallystick_rpc_calls_total{code="ok",method="Do"} 2
`
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "tallystick_rpc_calls_total"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(metrics); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	want = `
# HELP tallystick_rpc_changes_total Things that calls created, changed or deleted, by method and status.
# TYPE tallystick_rpc_changes_total counter
tallystick_rpc_changes_total{code="already_exists",method="Do"} 2
tallystick_rpc_changes_total{code="not_found",method="Do"} 1
tallystick_rpc_changes_total{code="ok",method="Do"} 2
`
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "tallystick_rpc_changes_total"); err != nil {
		t.Error(err)
	}
	if got := log.String(); strings.Count(got, `done=1 names=[a] refused=1 refusals="[b: already_exists]"`) != 2 || strings.Count(got, `done=0 names=[] refused=1 refusals="[a: not_found]"`) != 1 {
		t.Error(got)
	}
	if got := log.String(); strings.Count(got, "msg=change method=Do code=ok token=somebody") != 2 || strings.Count(got, "code=not_found") != 1 {
		t.Error(got)
	}
}

func TestPanicEndsOnlyItsCall(t *testing.T) {
	first := true
	client, log, metrics := observed(t, func() error {
		if first {
			first = false
			panic("a secret of the program")
		}
		return nil
	})
	_, err := client.CallUnary(t.Context(), connect.NewRequest(new(emptypb.Empty)))
	if connect.CodeOf(err) != connect.CodeInternal || strings.Contains(err.Error(), "secret") {
		t.Errorf("the caller got %v", err)
	}
	if !strings.Contains(log.String(), "a secret of the program") || !strings.Contains(log.String(), "observe_test.go") {
		t.Errorf("the log lacks cause or stack: %s", log)
	}
	if _, err := client.CallUnary(t.Context(), connect.NewRequest(new(emptypb.Empty))); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if n, _ := testutil.GatherAndCount(metrics, "tallystick_rpc_calls_total"); n != 2 {
		t.Errorf("%d series: a call that panics is not counted", n)
	}
}
