package seqrpc_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc"
)

// TestPeopleWithCurlAreTold: what speaks none of the protocols gets one line.
func TestPeopleWithCurlAreTold(t *testing.T) {
	url := serve(t, &stub{}).URL
	for _, tc := range []struct {
		name, method, contentType string
		status                    int
		says                      string
	}{
		{"no type", http.MethodPost, "", 415, `add the header "Content-Type: application/json"`},
		{"curl's own type", http.MethodPost, "application/x-www-form-urlencoded", 415, `add the header "Content-Type: application/json"`},
		{"a GET", http.MethodGet, "", 405, "use POST"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, url+"/tallystick.sequence.v1.SequenceService/Lease", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if tc.contentType != "" {
			req.Header.Set("Content-Type", tc.contentType)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != tc.status || !strings.Contains(string(body), tc.says) || strings.Count(string(body), "\n") != 1 {
			t.Errorf("%s: %s %q", tc.name, res.Status, body)
		}
	}
}

// TestTokensDoNotLeaveInClearText: only this machine may be told a token
// without TLS.
func TestTokensDoNotLeaveInClearText(t *testing.T) {
	for _, tc := range []struct {
		name, url string
		opts      seqrpc.Options
		refused   bool
	}{
		{"elsewhere", "http://192.0.2.1:7070", seqrpc.Options{Token: "x"}, true},
		{"a name", "http://server:7070", seqrpc.Options{Token: "x"}, true},
		{"one of several", "http://127.0.0.1:7070,http://192.0.2.1:7070", seqrpc.Options{Token: "x"}, true},
		{"waived", "http://192.0.2.1:7070", seqrpc.Options{Token: "x", InsecureNoTLS: true}, false},
		{"TLS", "https://192.0.2.1:7070", seqrpc.Options{Token: "x"}, false},
		{"no token", "http://192.0.2.1:7070", seqrpc.Options{}, false},
		{"loopback", "http://127.0.0.1:7070,http://localhost:7070,http://[::1]:7070", seqrpc.Options{Token: "x"}, false},
	} {
		_, err := seqrpc.Dial(tc.url, tc.opts)
		if errors.Is(err, sequence.ErrInvalid) != tc.refused {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
