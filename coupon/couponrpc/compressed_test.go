package couponrpc_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// TestCompressedBodies: what is sent in few bytes must not take much memory.
func TestCompressedBodies(t *testing.T) {
	s := serve(t)
	issue := fmt.Sprintf("/v1/campaigns/%d:issue", s.campaign.ID)
	for name, c := range map[string]struct {
		path, encoding string
		body           []byte
		status         int
		code           string
	}{
		"sound":              {issue, "gzip", zipped(`{"batch_no":"b","order_no":"o","count":1}`), 200, ""},
		"bomb for an issue":  {issue, "gzip", zipped(`{"batch_no":"` + strings.Repeat("0", 64<<20) + `"}`), 413, "TOO_LARGE"},
		"bomb for a redeem":  {"/v1/coupons:redeem", "gzip", zipped(`{"code":"` + strings.Repeat("0", 64<<20) + `"}`), 413, "TOO_LARGE"},
		"no gzip":            {issue, "gzip", []byte("{}"), 400, "INVALID_ARGUMENT"},
		"half of it":         {issue, "gzip", zipped(`{"batch_no":"b"}`)[:20], 400, "INVALID_ARGUMENT"},
		"damaged":            {issue, "gzip", bytes.Replace(zipped(strings.Repeat("a", 999)), []byte("a"), []byte("\xff"), 1)[:15], 400, "INVALID_ARGUMENT"},
		"another encoding":   {issue, "br", []byte("{}"), 400, "INVALID_ARGUMENT"},
		"encoding that none": {issue, "identity", []byte(`{"batch_no":"c","order_no":"o","count":1}`), 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+c.path, bytes.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Content-Encoding", c.encoding)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status || !strings.Contains(string(body), c.code) {
				t.Errorf("%d %.200s, want %d %s", resp.StatusCode, body, c.status, c.code)
			}
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 32<<20 {
				t.Errorf("%d MiB were allocated", (after.TotalAlloc-before.TotalAlloc)>>20)
			}
		})
	}
}

func zipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.Bytes()
}
