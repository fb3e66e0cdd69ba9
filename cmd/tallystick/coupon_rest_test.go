package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// An answer is one of the REST paths of coupons.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// rest makes a call as curl would.
func (p *process) rest(t testing.TB, method, path, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, b}
}

// into decodes an answer of that status.
func (a answer) into(t testing.TB, status int, v any) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
}

// campaign makes a campaign of two coupons that has these fields too.
func (p *process) campaign(t testing.TB, fields string) (id string) {
	t.Helper()
	var c struct{ ID string }
	p.rest(t, "POST", "/v1/campaigns", `{"name":"test","total":2,"value":{"amount_minor":"500","currency":"EUR"},`+fields+`}`).into(t, 201, &c)
	return c.ID
}

// generated has a campaign's coupons made.
func (p *process) generated(t testing.TB, campaign string) {
	t.Helper()
	var op struct {
		ID        string
		Done      bool
		Succeeded json.Number
	}
	p.rest(t, "POST", "/v1/campaigns/"+campaign+":generate", "{}").into(t, 202, &op)
	p.finished(t, op.ID)
}

// finished waits for the end of an operation.
func (p *process) finished(t testing.TB, operation string) {
	t.Helper()
	eventually(t, "the operation is done", func() bool {
		var op struct {
			Done  bool
			Error string
		}
		p.rest(t, "GET", "/v1/operations/"+operation, "").into(t, 200, &op)
		if op.Error != "" {
			t.Fatal(op.Error)
		}
		return op.Done
	})
}

// claim claims a coupon, again while that is worth it, and returns the answer.
func (p *process) claim(t testing.TB, campaign, user, request string) (a answer) {
	t.Helper()
	eventually(t, "the claim is answered", func() bool {
		a = p.rest(t, "POST", "/v1/campaigns/"+campaign+":claim", fmt.Sprintf(`{"user_id":%q,"request_no":%q}`, user, request))
		return a.status != http.StatusServiceUnavailable
	})
	return a
}
