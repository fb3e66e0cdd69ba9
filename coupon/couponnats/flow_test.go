package couponnats_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/shard"
)

// TestWalletAndOrderHearOfAnotherShard has the whole way: a redemption and a void
// of a coupon on another shard than the user's and the order's.
func TestWalletAndOrderHearOfAnotherShard(t *testing.T) {
	dir := t.TempDir()
	p, err := openPlatform(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	q, err := openQueue(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	relay := coupon.NewRelay(couponsql.NewOutbox(p.Cluster), q, nil)
	ctx, cancel := context.WithCancel(context.Background())
	relayed := make(chan error, 1)
	go func() { relayed <- relay.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-relayed })
	read(t, q, "wallet", coupon.NewProjector(p.Store).Apply)
	w := coupontest.NewWorld(t, coupon.Announce(p.Store, relay.Wake), p.Control, nil, nil)

	const user, order, big = "user", "order", "big-order"
	c := w.Campaign(t, 64, nil)
	issue, err := w.Issue(t.Context(), coupon.IssueRequest{Campaign: c.ID, Batch: "b", Order: big, Count: 64})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(issue.Coupons, func(c coupon.Coupon) bool {
		return !shard.Same(c.ID, shard.Text(user)) && !shard.Same(c.ID, shard.Text(order))
	})
	id := issue.Coupons[i].ID
	if _, err := w.Bind(t.Context(), coupon.Target{ID: id}, coupon.Call{User: user, Request: "bind"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Redeem(t.Context(), coupon.Target{ID: id}, coupon.Call{User: user, Order: order}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	wallet := func() []coupon.Status {
		page, err := w.Wallet(t.Context(), coupon.WalletQuery{User: user, Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		var all []coupon.Status
		for _, c := range page.Coupons {
			all = append(all, c.Status)
		}
		return all
	}
	consumed := func() []coupon.ID {
		all, err := w.OrderCoupons(t.Context(), order, coupon.OrderConsumed, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		var ids []coupon.ID
		for _, c := range all {
			ids = append(ids, c.ID)
		}
		return ids
	}
	await(t, "wallet after the redemption", wallet, coupon.Redeemed)
	await(t, "coupons of the order after the redemption", consumed, id)
	t.Logf("seen %v after the redemption", time.Since(begin).Round(time.Millisecond))
	if _, err := w.Void(t.Context(), id, coupon.Call{Order: order, Request: "void"}); err != nil {
		t.Fatal(err)
	}
	if got := consumed(); len(got) > 0 {
		t.Errorf("the order consumed %v after the void", got)
	}
	await(t, "wallet after the void", wallet, coupon.Issued)
	if all, err := w.OrderCoupons(t.Context(), big, coupon.OrderIssued, 0, 100); err != nil || len(all) != 64 {
		t.Errorf("%d coupons of the order that bought them, %v", len(all), err)
	}
	if _, err := w.OrderCoupons(t.Context(), big, "other", 0, 100); err == nil {
		t.Error("another role was taken")
	}
}

func await[T comparable](t *testing.T, what string, get func() []T, want ...T) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !slices.Equal(get(), want) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: %v, want %v", what, get(), want)
		}
	}
}
