package main_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// TestServerWithoutAWorkerNumber runs one whose control database has all 256
// leased: it makes no coupon until one is free, and all else goes on.
func TestServerWithoutAWorkerNumber(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, "--data", data, "--coupons", "embedded")
	stock := p.campaign(t, `"time_zone":"UTC","valid_days":1`)
	p.generated(t, stock)
	if code := p.stop(t); code != 0 {
		t.Fatalf("exit %d: %s", code, p.err)
	}
	control := openFolder(t, filepath.Join(data, "coupons")).Control
	leaseAll(t, control)

	p = start(t, "--data", data, "--coupons", "embedded")
	if !strings.Contains(p.err.String(), "all 256 worker numbers are leased") {
		t.Errorf("the log does not say why: %s", p.err)
	}
	var held struct{ Coupon struct{ ID string } }
	p.claim(t, stock, "ann", "r1").into(t, 200, &held)
	var redeemed struct{}
	p.rest(t, "POST", "/v1/coupons:redeem", fmt.Sprintf(`{"id":%q,"user_id":"ann","order_no":"o1"}`, held.Coupon.ID)).into(t, 200, &redeemed)

	next := p.campaign(t, `"time_zone":"UTC","valid_days":1`)
	a := p.rest(t, "POST", "/v1/campaigns/"+next+":generate", "{}")
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || a.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(string(a.body), `"retryable":true`) {
		t.Errorf("generation without ids: %d %v %s", a.status, a.header, a.body)
	}
	if a := p.rest(t, "POST", "/v1/campaigns/"+next+":claim", `{"user_id":"ann","request_no":"r1"}`); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || a.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(string(a.body), `"retryable":true`) {
		t.Errorf("a claim of what is not there yet: %d %v %s", a.status, a.header, a.body)
	}

	free(t, control, 77)
	eventually(t, "generation begins", func() bool {
		return p.rest(t, "POST", "/v1/campaigns/"+next+":generate", "{}").status == http.StatusAccepted
	})
	p.generated(t, next)
	p.claim(t, next, "ann", "r1").into(t, 200, &held)
	if got := number(t, held.Coupon.ID); got != 77 {
		t.Errorf("coupon %s was made with worker number %d", held.Coupon.ID, got)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit %d: %s", code, p.err)
	}
	if row := leases(t, control)[77]; row.Token != "" {
		t.Errorf("the number was not given back: %+v", row)
	}
}

// openFolder opens the databases of embedded coupons beside a server.
func openFolder(t *testing.T, dir string) *couponsql.Platform {
	t.Helper()
	h := &couponHome{}
	control, shards := couponsql.Folder(dir, 8)
	h.open(t, "sqlite", couponsql.Options{Control: control, Shards: shards, Open: func(ctx context.Context, at string) (couponsql.Database, error) {
		return shardsql.OpenSQLite(ctx, at, shardsql.SQLiteOptions{})
	}})
	return h.direct
}

// leaseAll has others hold all worker numbers for an hour.
func leaseAll(t *testing.T, workers coupon.Workers) {
	t.Helper()
	rows := leases(t, workers)
	for n := range rows {
		swapLease(t, workers, rows[n], coupon.Worker{Number: uint8(n), Token: "another", HighWater: time.Now().Add(time.Hour).UnixMilli()})
	}
}

// free gives a number back that another holds.
func free(t *testing.T, workers coupon.Workers, n uint8) {
	t.Helper()
	swapLease(t, workers, leases(t, workers)[n], coupon.Worker{Number: n, HighWater: time.Now().UnixMilli() - 1})
}

func swapLease(t *testing.T, workers coupon.Workers, old, next coupon.Worker) {
	t.Helper()
	if done, err := workers.SwapWorker(t.Context(), old, next); err != nil || !done {
		t.Fatalf("%+v: %v, %v", next, done, err)
	}
}

// leases returns the rows of all numbers, those that there are not yet too.
func leases(t *testing.T, workers coupon.Workers) (all [coupon.WorkerNumbers]coupon.Worker) {
	t.Helper()
	rows, _, err := workers.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range all {
		all[n].Number = uint8(n)
	}
	for _, row := range rows {
		all[row.Number] = row
	}
	return all
}

// number returns the worker number in an id.
func number(t *testing.T, id string) (n int64) {
	t.Helper()
	if _, err := fmt.Sscan(id, &n); err != nil {
		t.Fatal(err)
	}
	return n / (1 << 14) % 256
}
