package couponrpc_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestHalfARequestIsNotItsCallersMistake sends requests whose connection ends
// before they do, as a proxy's may, and reads what is answered.
func TestHalfARequestIsNotItsCallersMistake(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"/v1/coupons:redeem", "/tallystick.coupon.v1.CouponService/Redeem"} {
		t.Run(path, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n{\"id\":\"1\",\"order", path)
			conn.(*net.TCPConn).CloseWrite()
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != 503 || !strings.Contains(string(body), "the request did not arrive whole: send it again") || !strings.Contains(string(body), "SHARD_UNAVAILABLE") {
				t.Errorf("%d %s, %v", resp.StatusCode, body, err)
			}
			if strings.HasPrefix(path, "/v1/") && resp.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		})
	}
}
