package couponrpc_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc"
)

// clientOf returns a client of a server that answers with handler.
func clientOf(t *testing.T, handler http.HandlerFunc) *couponrpc.Client {
	t.Helper()
	h := httptest.NewUnstartedServer(handler)
	h.Config.Protocols = new(http.Protocols)
	h.Config.Protocols.SetUnencryptedHTTP2(true)
	h.Start()
	t.Cleanup(h.Close)
	c, err := couponrpc.Dial(h.URL, couponrpc.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// cutOff begins to answer and dies.
func cutOff(status int, kind, begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, begin)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// says answers whole.
func says(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// TestNoWholeAnswerIsToBeAskedForAgain has servers that die while they answer and
// others that answer without a refusal of ours. A call of which nobody said that
// nothing was done is never its caller's mistake.
func TestNoWholeAnswerIsToBeAskedForAgain(t *testing.T) {
	const proto, json = "application/proto", "application/json"
	for _, c := range []struct {
		what   string
		answer http.HandlerFunc
		code   string
		again  bool
	}{
		{"a refusal cut off before its body", cutOff(400, json, ""), "SHARD_UNAVAILABLE", true},
		{"a refusal cut off in its body", cutOff(400, json, `{"code":"failed_prec`), "SHARD_UNAVAILABLE", true},
		{"no such coupon, cut off", cutOff(404, json, ""), "SHARD_UNAVAILABLE", true},
		{"no token, cut off", cutOff(401, json, ""), "SHARD_UNAVAILABLE", true},
		{"a success cut off", cutOff(200, proto, "\x0a"), "SHARD_UNAVAILABLE", true},
		{"dead before it answers", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "SHARD_UNAVAILABLE", true},
		{"a success that is none", says(200, proto, "\xff\xff"), "SHARD_UNAVAILABLE", true},
		{"canceled in the server", says(499, json, `{"code":"canceled"}`), "SHARD_UNAVAILABLE", true},
		{"too late in the server", says(504, json, `{"code":"deadline_exceeded"}`), "SHARD_UNAVAILABLE", true},
		{"unknown to the server", says(500, json, `{"code":"unknown","message":"read message: unexpected EOF"}`), "SHARD_UNAVAILABLE", true},
		{"a proxy without a server", says(502, "text/html", "Bad Gateway"), "SHARD_UNAVAILABLE", true},
		{"another server", says(404, "text/plain", "not found"), "NOT_FOUND", false},
		{"a proxy that wants a token", says(401, "text/html", "no"), "UNAUTHENTICATED", false},
		{"a request that it cannot read", says(400, json, `{"code":"invalid_argument","message":"no"}`), "INVALID_ARGUMENT", false},
		{"too large for it", says(429, json, `{"code":"resource_exhausted","message":"no"}`), "TOO_LARGE", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, err := clientOf(t, c.answer).Claim(t.Context(), 1, coupon.Call{User: "ann", Request: "r1"})
			expect(t, err, c.code, c.again)
		})
	}
}

// expect fails the test if err is not a refusal of a kind.
func expect(t *testing.T, err error, code string, again bool) {
	t.Helper()
	r, ok := errors.AsType[*coupon.Refusal](err)
	if !ok || r.Code != code || r.Retryable != again {
		t.Errorf("%+v, want %s, retryable: %v", err, code, again)
	}
	if ok && strings.Contains(r.Message, "\n") {
		t.Errorf("more than a line: %q", r.Message)
	}
}

// TestCallThatWasNeverSentCannotHaveHappened has nobody who listens.
func TestCallThatWasNeverSentCannotHaveHappened(t *testing.T) {
	c, err := couponrpc.Dial("http://127.0.0.1:1", couponrpc.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateCampaign(t.Context(), coupon.Campaign{}, "")
	expect(t, err, "SHARD_UNAVAILABLE", true)
	if !strings.Contains(err.Error(), "cannot reach http://127.0.0.1:1: ") {
		t.Error(err)
	}
	_, err = c.Claim(t.Context(), 1, coupon.Call{User: "\xff", Request: "r1"})
	expect(t, err, "INVALID_ARGUMENT", false)
}

// TestCampaignWithoutAKeyIsNotToBeCreatedAgain: with one it is the same campaign
// the second time.
func TestCampaignWithoutAKeyIsNotToBeCreatedAgain(t *testing.T) {
	c := clientOf(t, cutOff(200, "application/proto", ""))
	_, err := c.CreateCampaign(t.Context(), coupon.Campaign{}, "")
	expect(t, err, "SHARD_UNAVAILABLE", false)
	if !strings.Contains(err.Error(), "it may have happened") {
		t.Error(err)
	}
	_, err = c.CreateCampaign(t.Context(), coupon.Campaign{}, "key")
	expect(t, err, "SHARD_UNAVAILABLE", true)
}

// TestCallersOwnEndSaysNothingAboutTheOutcome cancels calls that are under way.
func TestCallersOwnEndSaysNothingAboutTheOutcome(t *testing.T) {
	arrived := make(chan struct{}, 1)
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := c.Claim(ctx, 1, coupon.Call{User: "ann", Request: "r1"})
	expect(t, err, "SHARD_UNAVAILABLE", true)
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = c.Claim(ctx, 1, coupon.Call{User: "ann", Request: "r1"})
	expect(t, err, "SHARD_UNAVAILABLE", true)
}
