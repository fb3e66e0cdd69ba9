package seqrpc_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc"
)

var oneItem = sequence.LeaseRequest{Items: []sequence.LeaseItem{{Name: "a", Count: 1}}}

func granted(server string) *stub {
	return &stub{lease: sequence.LeaseResponse{Results: []sequence.LeaseResult{
		{Name: "a", Runs: []sequence.Run{{First: 1, Step: 1, Count: 1}}, Epoch: 1, LeaseID: server + "-1"},
	}}, record: fullRecord}
}

func refused(err *sequence.Error) *stub {
	return &stub{lease: sequence.LeaseResponse{Results: []sequence.LeaseResult{{Name: "a", Err: err}}}}
}

func TestNotConnectedIsUnavailable(t *testing.T) {
	url := deadURL(t)
	c := dial(t, url)
	for name, err := range everyError(t.Context(), c) {
		if !errors.Is(err, sequence.ErrUnavailable) || !strings.Contains(err.Error(), "cannot reach "+url) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// everyError makes every call and returns their errors.
func everyError(ctx context.Context, c *seqrpc.Client) map[string]error {
	errs := make(map[string]error)
	_, errs["lease"] = c.Lease(ctx, oneItem)
	errs["return"] = c.Return(ctx, sequence.ReturnRequest{Name: "a", LeaseID: "S-1"})
	_, errs["create"] = c.Create(ctx, sequence.CreateRequest{Specs: []sequence.Spec{{Name: "a"}}})
	_, errs["alter"] = c.Alter(ctx, sequence.AlterRequest{Spec: sequence.Spec{Name: "a"}})
	_, errs["get"] = c.Get(ctx, "a")
	_, errs["list"] = c.List(ctx, sequence.ListRequest{})
	errs["delete"] = c.Delete(ctx, "a")
	_, errs["restart"] = c.Restart(ctx, sequence.RestartRequest{Name: "a"})
	return errs
}

// TestSentAndNotAnswered checks that only what is harmless to repeat is called
// unavailable.
func TestSentAndNotAnswered(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"the connection breaks": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a proxy says 502":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"a proxy says 503":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"a web page comes back": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(answer)
			srv.Config.Protocols = new(http.Protocols)
			srv.Config.Protocols.SetUnencryptedHTTP2(true)
			srv.Start()
			t.Cleanup(srv.Close)
			want := map[string]sequence.Code{
				"lease": sequence.CodeUnavailable, "get": sequence.CodeUnavailable, "list": sequence.CodeUnavailable,
				"return": sequence.CodeUnknown, "create": sequence.CodeUnknown, "alter": sequence.CodeUnknown,
				"delete": sequence.CodeUnknown, "restart": sequence.CodeUnknown,
			}
			for call, err := range everyError(t.Context(), dial(t, srv.URL)) {
				if got := sequence.CodeOf(err); got != want[call] {
					t.Errorf("%s: %s (%v), want %s", call, got, err, want[call])
				}
			}
		})
	}
}

func TestOtherServerIsNoTallystick(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	_, err := dial(t, srv.URL).Get(t.Context(), "a")
	if !errors.Is(err, sequence.ErrPrecondition) || !strings.Contains(err.Error(), "check the URL") {
		t.Error(err)
	}
}

func TestCallsHaveADeadline(t *testing.T) {
	svc := granted("S")
	svc.hold = make(chan struct{})
	srv := serve(t, svc)
	c, err := seqrpc.Dial(srv.URL, seqrpc.Options{Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_, err = c.Lease(t.Context(), oneItem)
	if !errors.Is(err, sequence.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("lease: %v", err)
	}
	if err := c.Delete(t.Context(), "a"); !errors.Is(err, sequence.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("delete: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Lease(ctx, oneItem); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestFailsOverToTheNextServer(t *testing.T) {
	away := &sequence.Error{Code: sequence.CodeUnavailable, Message: "the store is away"}
	for name, first := range map[string]string{
		"dead":              deadURL(t),
		"stopping":          serve(t, &stub{err: sequence.ErrClosed}).URL,
		"without its store": serve(t, refused(away)).URL,
	} {
		t.Run(name, func(t *testing.T) {
			svc := granted("S")
			c := dial(t, first+", "+serve(t, svc).URL)
			for range 8 { // whichever it begins with
				res, err := c.Lease(t.Context(), oneItem)
				if err != nil || res.Results[0].Err != nil || res.Results[0].LeaseID != "S-1" {
					t.Fatalf("%+v %v", res, err)
				}
			}
			if svc.called() != 8 {
				t.Errorf("the server that works was called %d times, want 8", svc.called())
			}
		})
	}
}

func TestOnlyOpenItemsAreAskedElsewhere(t *testing.T) {
	both := sequence.LeaseRequest{Items: []sequence.LeaseItem{{Name: "a", Count: 1}, {Name: "b", Count: 1}}}
	half := granted("S1")
	half.lease.Results = append(half.lease.Results, sequence.LeaseResult{Name: "b", Err: &sequence.Error{Code: sequence.CodeUnavailable, Message: "away"}})
	rest := &stub{lease: sequence.LeaseResponse{Results: []sequence.LeaseResult{{Name: "b", LeaseID: "S2-1"}}}, record: fullRecord}
	for _, tc := range []struct {
		name  string
		other string
		want  []sequence.Code
	}{
		{"the other server has it", serve(t, rest).URL, []sequence.Code{"", ""}},
		{"the other server is dead", deadURL(t), []sequence.Code{"", sequence.CodeUnavailable}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := beginningWith(t, half, serve(t, half).URL+","+tc.other)
			res, err := c.Lease(t.Context(), both)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range tc.want {
				got := sequence.Code("")
				if e := res.Results[i].Err; e != nil {
					got = e.Code
				}
				if got != want {
					t.Errorf("item %d: %q, want %q", i, got, want)
				}
			}
		})
	}
}

// beginningWith returns a client of two servers that prefers the one of svc.
func beginningWith(t *testing.T, svc *stub, urls string) *seqrpc.Client {
	t.Helper()
	for {
		c := dial(t, urls)
		before := svc.called()
		if _, err := c.Get(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if svc.called() > before {
			return c
		}
	}
}

func TestReturnGoesToTheIssuer(t *testing.T) {
	one, two := granted("ONE"), granted("TWO")
	u1, u2 := serve(t, one).URL, serve(t, two).URL
	c := dial(t, u1+","+u2)
	learn := func(s *stub) { // leases until s has granted one
		other := one
		if s == one {
			other = two
		}
		other.err = sequence.ErrClosed
		if _, err := c.Lease(t.Context(), oneItem); err != nil {
			t.Fatal(err)
		}
		other.err = nil
	}
	learn(one)
	learn(two)
	for _, s := range []struct {
		svc *stub
		id  string
	}{{one, "ONE-7"}, {two, "TWO-9"}} {
		req := sequence.ReturnRequest{Name: "a", LeaseID: s.id, From: 1, Count: 2}
		if err := c.Return(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(any(req), s.svc.got); diff != "" {
			t.Errorf("%s did not get the return: %s", s.id, diff)
		}
	}
}

func TestRefusalIsNotAskedElsewhere(t *testing.T) {
	notFound := &sequence.Error{Code: sequence.CodeNotFound, Message: "no such"}
	one, two := refused(notFound), refused(notFound)
	c := dial(t, serve(t, one).URL+","+serve(t, two).URL)
	res, err := c.Lease(t.Context(), oneItem)
	if err != nil || res.Results[0].Err.Code != sequence.CodeNotFound {
		t.Fatalf("%+v %v", res, err)
	}
	if one.called()+two.called() != 1 {
		t.Errorf("%d calls, want 1", one.called()+two.called())
	}
}

func TestBadNamesDoNotSpoilTheRest(t *testing.T) {
	svc := granted("S")
	c := dial(t, serve(t, svc).URL)
	res, err := c.Lease(t.Context(), sequence.LeaseRequest{Items: []sequence.LeaseItem{{Name: "\xff", Count: 1}, {Name: "a", Count: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if e := res.Results[0].Err; e == nil || e.Code != sequence.CodeInvalid || e.Field != "name" {
		t.Errorf("bad name: %v", e)
	}
	if res.Results[1].LeaseID != "S-1" {
		t.Errorf("good name: %+v", res.Results[1])
	}
	if _, err := c.Get(t.Context(), "\xff"); sequence.CodeOf(err) != sequence.CodeInvalid {
		t.Errorf("get: %v", err)
	}
}

func TestDialRefusesBadOptions(t *testing.T) {
	for _, tc := range []struct{ url, ca, says string }{
		{"", "", "server URL is empty"},
		{"http://a,", "", "server URL is empty"},
		{"127.0.0.1:7070", "", "write it like http://127.0.0.1:7070"},
		{"ftp://a", "", "write it like"},
		{"http://me:secret@a", "", "give the token apart"},
		{"http://a/?x=1", "", "drop everything from the ?"},
		{"https://a", "/does/not/exist", "read the CA file"},
		{"https://a", "failover_test.go", "has no certificate in PEM"},
	} {
		_, err := seqrpc.Dial(tc.url, seqrpc.Options{CAFile: tc.ca})
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", tc.url, err, tc.says)
		}
	}
}

func TestTokenIsSent(t *testing.T) {
	var got string
	mux := http.NewServeMux()
	path, h := seqrpc.Handler(&stub{record: fullRecord})
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		h.ServeHTTP(w, r)
	})
	srv := httptest.NewUnstartedServer(mux)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	c, err := seqrpc.Dial(srv.URL, seqrpc.Options{Token: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Get(t.Context(), "a"); err != nil || got != "Bearer abc" {
		t.Errorf("header %q, %v", got, err)
	}
}
