package migrrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migrrpc"
	"github.com/tallystick/tallystick/migrate/migtest"
)

const text = `name: numbers
source: {kind: postgres, table: numbers, key: [id]}
sink: {kind: dynamodb, table: numbers, key: {partition: id}}
slots: {by: integer, width: 10}
write: {mode: guarded, version: version}
state: {kind: file, keeper_interval: 100ms}
`

// A pod is a migration of 95 rows in ten slots, in memory, that is served.
type pod struct {
	m      *migrate.Migration
	local  *migrrpc.Local
	client *migrrpc.Client
	source *migtest.Source
	url    string
}

func serve(t testing.TB, svc migrrpc.Service) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(migrrpc.Handler(svc))
	srv := newServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

func newServer(h http.Handler) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	return srv
}

func dial(t testing.TB, url string) *migrrpc.Client {
	t.Helper()
	c, err := migrrpc.Dial(url, migrrpc.Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func newPod(t testing.TB) *pod {
	t.Helper()
	plan, err := migrate.ParsePlan([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &pod{source: migtest.NewSource(plan.Axis(), false)}
	for i := range 95 {
		p.source.Put(migrate.Row{Key: migrate.Key{fmt.Sprint(i)}, Version: 1})
	}
	state := migtest.NewState(plan.Axis())
	p.m = migrate.New(plan, p.source, migtest.NewSink(migrate.Guarded), state, migrate.Options{Pod: "pod-1"})
	p.local = migrrpc.NewLocal(p.m, plan, p.source, state)
	t.Cleanup(func() { p.local.Close() })
	p.url = serve(t, p.local)
	p.client = dial(t, p.url)
	return p
}

// finish starts the migration over the network and runs it to its end.
func (p *pod) finish(t testing.TB) {
	t.Helper()
	if s, err := p.client.Start(t.Context()); err != nil || s != migrate.ToStart {
		t.Fatalf("start: %s, %v", s, err)
	}
	if err := p.m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestClientSeesWhatTheServiceDoes(t *testing.T) {
	p := newPod(t)
	o, err := p.client.Plan(t.Context())
	if local, _ := p.local.Plan(t.Context()); err != nil || !cmp.Equal(o, local) || o.Slots != 10 || o.Rows != 95 || o.WriteUnits != 95 {
		t.Errorf("plan: %+v, %v", o, err)
	}
	p.finish(t)
	if s, err := p.client.Start(t.Context()); err != nil || s != migrate.Finished {
		t.Errorf("start again: %s, %v", s, err)
	}
	if s, err := p.client.Stop(t.Context()); err != nil || s != migrate.Finished {
		t.Errorf("stop: %s, %v", s, err)
	}
	verdict := p.verify(t, migrrpc.VerifyRequest{Mode: "full"})
	if !verdict.Clean || verdict.Compared != 95 {
		t.Errorf("verdict %+v", verdict)
	}
	got, err := p.client.Status(t.Context())
	want, wrong := p.local.Status(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil || wrong != nil || got.Rows.Written != 95 {
		t.Errorf("status (-local +client):\n%s%v %v", diff, err, wrong)
	}
	if settled, left, err := p.client.Replay(t.Context()); settled != 0 || left != 0 || err != nil {
		t.Errorf("replay: %d, %d, %v", settled, left, err)
	}
}

// verify begins a verification over the network and returns its verdict.
func (p *pod) verify(t testing.TB, req migrrpc.VerifyRequest) migrate.Verdict {
	t.Helper()
	v, err := p.client.Verify(t.Context(), req)
	for tick := time.NewTicker(5 * time.Millisecond); err == nil && !v.Done; <-tick.C {
		v, err = p.client.Verify(t.Context(), migrrpc.VerifyRequest{ID: v.ID})
	}
	if err != nil || v.Err != nil {
		t.Fatal(err, v.Err)
	}
	return v.Verdict
}

func TestLedgerComesPageByPage(t *testing.T) {
	p := newPod(t)
	p.finish(t)
	want, err := p.local.Ledger(t.Context(), 0, 100)
	if err != nil || len(want) != 10 {
		t.Fatalf("%d lines, %v", len(want), err)
	}
	var got []migrate.LedgerLine
	for from := int64(0); ; {
		lines, err := p.client.Ledger(t.Context(), from, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) == 0 {
			break
		}
		got, from = append(got, lines...), lines[len(lines)-1].Number+1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-local +client):\n%s", diff)
	}
}

// post does what curl does.
func post(t testing.TB, url, method, body string) (int, string) {
	t.Helper()
	res, err := http.Post(url+"/tallystick.migrate.v1.MigrationService/"+method, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestJSON(t *testing.T) {
	p := newPod(t)
	for _, c := range []struct {
		method, body string
		status       int
		want         string
	}{
		{"Status", "{}", 200, `{"status":"NOT_STARTED","generation":"0","phase":"copy","slots":{"total":"0","finished":"0","running":"0"},"rows":{"read":"0","bytes":"0","written":"0","already_newer":"0","already_ours":"0","quarantined":"0"},"last_slot":"","eta_s":[],"workers":[],"keeper":""}`},
		{"Report", "{}", 200, `{"lines":[],"next_page_token":""}`},
		{"Report", `{"page_size":1001}`, 400, `"message":"page_size: 1001 is out of range (use 1 to 1000)"`},
		{"Report", `{"pageToken":"x"}`, 400, `page_token`},
		{"Verify", `{"mode":"all"}`, 400, `use counts, samples or full`},
		{"Verify", `{"mode":"full","only":"7"}`, 400, `no slot begins there`},
		{"Verify", `{"mode":"counts","repair":true}`, 400, `names no rows`},
		{"Verify", `{"verification_id":"x"}`, 404, `this pod has no verification x`},
		{"Status", `{"of":1}`, 400, `unknown field`},
		{"Status", ``, 400, `the body is empty`},
	} {
		if status, got := post(t, p.url, c.method, c.body); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.body, status, got)
		}
	}
}

// A failing service fails with err.
type failing struct {
	migrrpc.Service
	err error
}

func (f failing) Status(context.Context) (migrate.Report, error) { return migrate.Report{}, f.err }

func TestErrorsCrossTheNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want migrrpc.Error
	}{
		"a status":    {fmt.Errorf("start: %w", migrate.ErrWrongStatus), migrrpc.Error{Code: connect.CodeFailedPrecondition, Message: "start: status does not allow it"}},
		"a refusal":   {migrate.Finding{Field: "sink", Message: "is another", Remedy: "name it"}, migrrpc.Error{Code: connect.CodeFailedPrecondition, Field: "sink", Message: "is another", Remedy: "name it"}},
		"a lost one":  {migrate.ErrStateLost, migrrpc.Error{Code: connect.CodeFailedPrecondition, Message: "state lost"}},
		"a passing":   {fmt.Errorf("get: %w", migrate.ErrTransient), migrrpc.Error{Code: connect.CodeUnavailable, Message: "get: failed for now"}},
		"a plan":      {&migrate.PlanError{Line: 3, Field: "workers", Message: "is odd", Remedy: "even it"}, migrrpc.Error{Code: connect.CodeInvalidArgument, Field: "workers", Message: "plan, line 3: workers: is odd", Remedy: "even it"}},
		"an own":      {&migrrpc.Error{Code: connect.CodeNotFound, Message: "gone"}, migrrpc.Error{Code: connect.CodeNotFound, Message: "gone"}},
		"any other":   {errors.New("broken\nin two"), migrrpc.Error{Code: connect.CodeInternal, Message: "broken in two"}},
		"a late call": {context.DeadlineExceeded, migrrpc.Error{Code: connect.CodeDeadlineExceeded, Message: "context deadline exceeded"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dial(t, serve(t, failing{err: c.err})).Status(t.Context())
			got, ok := errors.AsType[*migrrpc.Error](err)
			if !ok || *got != c.want {
				t.Errorf("got %#v, want %#v", err, c.want)
			}
		})
	}
}

func TestClientSaysWhoDoesNotAnswer(t *testing.T) {
	srv := newServer(http.NotFoundHandler())
	_, err := dial(t, srv.URL).Status(t.Context())
	if err == nil || !strings.Contains(err.Error(), srv.URL+" does not serve a migration") {
		t.Errorf("another service: %v", err)
	}
	srv.Close()
	_, err = dial(t, srv.URL).Status(t.Context())
	if e, ok := errors.AsType[*migrrpc.Error](err); !ok || e.Code != connect.CodeUnavailable || !strings.Contains(e.Error(), "cannot reach "+srv.URL) {
		t.Errorf("nobody: %v", err)
	}
	if _, err := migrrpc.Dial("nowhere", migrrpc.Options{}); err == nil || !strings.HasPrefix(err.Error(), "migrrpc: ") {
		t.Errorf("no URL: %v", err)
	}
}

func TestATokenLeavesThisMachineOnlyByTLS(t *testing.T) {
	for url, allowed := range map[string]bool{
		"http://127.0.0.1:7071": true, "http://[::1]:7071": true, "http://localhost:7071": true,
		"https://10.0.0.1:7071": true, "http://10.0.0.1:7071": false, "http://pod.example:7071": false,
	} {
		c, err := migrrpc.Dial(url, migrrpc.Options{Token: "tally_x"})
		if e, ok := errors.AsType[*migrrpc.Error](err); (err == nil) != allowed || err != nil && (!ok || e.Code != connect.CodeInvalidArgument || strings.Contains(e.Error(), "tally_x")) {
			t.Errorf("%s: %v", url, err)
		}
		for _, o := range []migrrpc.Options{{}, {Token: "tally_x", InsecureNoTLS: true}} {
			if _, err := migrrpc.Dial(url, o); err != nil {
				t.Errorf("%s with %+v: %v", url, o, err)
			}
		}
		if c != nil {
			c.Close()
		}
	}
}
