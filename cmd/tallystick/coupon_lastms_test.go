package main_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// A setStore is a store whose databases' clocks show what the test sets.
type setStore struct {
	coupon.Store
	clock *atomic.Pointer[time.Time]
}

func (s setStore) Write(ctx context.Context, key shard.Key, fn func(coupon.Tx) error) error {
	return s.Store.Write(ctx, key, func(tx coupon.Tx) error { return fn(setTx{tx, *s.clock.Load()}) })
}

type setTx struct {
	coupon.Tx
	now time.Time
}

func (t setTx) Now() time.Time { return t.now }

// TestCouponIsGoodToTheLastMillisecond redeems one ms before the end and at it, on
// days of changes of the clocks that have been.
func TestCouponIsGoodToTheLastMillisecond(t *testing.T) {
	t.Parallel()
	control, shards := couponsql.Folder(t.TempDir(), 1)
	p, err := couponsql.Open(t.Context(), couponsql.Options{
		Control: control, Shards: shards, EnsureFence: shardsql.EnsureFence, Fenced: shardsql.Fenced,
		Open: func(ctx context.Context, at string) (couponsql.Database, error) {
			return shardsql.OpenSQLite(ctx, at, shardsql.SQLiteOptions{})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var clock atomic.Pointer[time.Time]
	set := func(now time.Time) { clock.Store(&now) }
	set(time.Now())
	t.Run("zones", func(t *testing.T) {
		w := coupontest.NewWorld(t, setStore{p.Store, &clock}, p.Control, nil, nil)
		for _, c := range []struct{ zone, claim, end string }{
			{"Europe/Berlin", "2024-03-30T11:00:00Z", "2024-03-31T22:00:00Z"},        // last day of 23 hours
			{"Europe/Berlin", "2024-10-26T10:00:00Z", "2024-10-27T23:00:00Z"},        // 25
			{"America/New_York", "2024-11-02T03:59:59.999Z", "2024-11-03T04:00:00Z"}, // claimed in the day's last ms
			{"America/New_York", "2024-11-02T04:00:00Z", "2024-11-04T05:00:00Z"},     // and 1 ms later; 25
			{"Australia/Lord_Howe", "2024-04-06T00:00:00Z", "2024-04-07T13:30:00Z"},  // 24.5
			{"America/Sao_Paulo", "2018-11-02T15:00:00Z", "2018-11-04T03:00:00Z"},    // the next day begins at 01:00
			{"Asia/Beirut", "2022-03-25T10:00:00Z", "2022-03-26T22:00:00Z"},          // likewise
			{"Asia/Kathmandu", "2024-06-01T18:14:59Z", "2024-06-02T18:15:00Z"},
		} {
			campaign := w.Campaign(t, 2, func(o *coupon.Campaign) {
				o.TimeZone, o.ValidDays, o.ValidFrom = c.zone, 1, time.Date(2018, 1, 1, 0, 0, 0, 0, time.UTC)
			})
			set(parseInstant(t, c.claim))
			in, late := mustClaim(t, w, campaign.ID, "ann"), mustClaim(t, w, campaign.ID, "bob")
			end := parseInstant(t, c.end)
			if !in.Valid.Until.Equal(end) || !late.Valid.Until.Equal(end) {
				t.Errorf("%s, claimed %s: ends %s, want %s", c.zone, c.claim, in.Valid.Until, c.end)
			}
			set(end.Add(-time.Millisecond))
			if _, err := w.Redeem(t.Context(), coupon.Target{ID: in.ID}, coupon.Call{User: "ann", Order: "o1"}); err != nil {
				t.Errorf("%s, 1 ms before the end: %v", c.zone, err)
			}
			set(end)
			if _, err := w.Redeem(t.Context(), coupon.Target{ID: late.ID}, coupon.Call{User: "bob", Order: "o1"}); !errors.Is(err, coupon.ErrExpired) {
				t.Errorf("%s, at the end: %v, want EXPIRED", c.zone, err)
			}
		}
	})
}

func parseInstant(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func mustClaim(t *testing.T, w *coupontest.World, campaign int64, user string) coupon.Coupon {
	t.Helper()
	var got coupon.Result
	if err := persist(t.Context(), func(ctx context.Context) (err error) {
		got, err = w.Claim(ctx, campaign, coupon.Call{User: user, Request: "r1"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return got.Coupon
}
