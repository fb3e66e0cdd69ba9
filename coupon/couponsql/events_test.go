package couponsql_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/shard"
)

func TestEventsOnSQLite(t *testing.T) {
	p := open(t, sqlite(t).options(2))
	testEvents(t, p)
}

func TestEventsOnMariaDB(t *testing.T) {
	p := open(t, mariadb(t).options(2))
	t.Run("late commit", func(t *testing.T) { testLateCommit(t, p) })
	testEvents(t, p)
}

func testEvents(t *testing.T, p *couponsql.Platform) {
	t.Run("outbox", func(t *testing.T) {
		coupontest.TestOutbox(t, coupontest.OutboxSubject{Outbox: couponsql.NewOutbox(p.Cluster), Put: func(t *testing.T, c coupon.Coupon) {
			write(t, p.Store, c.ID, func(tx coupon.Tx) error { return tx.Add([]coupon.Coupon{c}) })
		}})
	})
	t.Run("redemptions", func(t *testing.T) { testRedemptions(t, p.Store) })
	t.Run("coupons of an order", func(t *testing.T) { testOrderCoupons(t, p) })
	t.Run("projection", func(t *testing.T) { testProjection(t, p.Store) })
	t.Run("projection of bulk steps", func(t *testing.T) { testBulkProjection(t, p.Store) })
}

func write(t *testing.T, s coupon.Store, key shard.Key, fn func(coupon.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), key, fn); err != nil {
		t.Fatal(err)
	}
}

// testLateCommit has a row that got its number first and is committed last, and
// rows around it removed meanwhile.
func testLateCommit(t *testing.T, p *couponsql.Platform) {
	outbox := couponsql.NewOutbox(p.Cluster)
	late, early := sample(t, 77<<10|21), sample(t, 78<<10|21)
	lease, mine, err := outbox.Lease(t.Context(), 21, "a", time.Minute)
	if err != nil || !mine {
		t.Fatal(mine, err)
	}
	write(t, p.Store, late.ID, func(tx coupon.Tx) error {
		if err := tx.Add([]coupon.Coupon{late}); err != nil {
			return err
		}
		if err := p.Store.Write(t.Context(), early.ID, func(tx coupon.Tx) error { return tx.Add([]coupon.Coupon{early}) }); err != nil {
			return err
		}
		rows, err := outbox.Oldest(t.Context(), 21, 10)
		if err != nil || len(rows) != 1 || rows[0].Coupon != early.ID {
			return fmt.Errorf("%d rows, %w; want the one that is committed", len(rows), err)
		}
		return outbox.Remove(t.Context(), 21, lease, rows, time.Minute)
	})
	rows, err := outbox.Oldest(t.Context(), 21, 10)
	if err != nil || len(rows) != 1 || rows[0].Coupon != late.ID {
		t.Errorf("%d rows, %v; want the one that came late", len(rows), err)
	}
}

func testRedemptions(t *testing.T, s coupon.Store) {
	const order = "order 1 of redemptions"
	list := func(after coupon.ID, n int) (ids []coupon.ID) {
		err := s.Read(t.Context(), shard.Text(order), func(rows coupon.Rows) (err error) {
			ids, err = rows.Redeemed(order, after, n)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	keep := func(id coupon.ID, version uint32, voided bool) {
		write(t, s, shard.Text(order), func(tx coupon.Tx) error {
			return tx.KeepRedemption(coupon.OrderRedemption{Order: order, Coupon: id, Version: version, Voided: voided})
		})
	}
	keep(30, 3, false)
	keep(10, 3, false)
	keep(20, 4, true) // known to be voided before it was known
	keep(20, 3, false)
	keep(40, 3, false)
	write(t, s, shard.Text(order), func(tx coupon.Tx) error {
		return tx.KeepRedemption(coupon.OrderRedemption{Order: "ORDER 1 of redemptions", Coupon: 11, Version: 3})
	})
	for _, c := range []struct {
		after coupon.ID
		n     int
		want  []coupon.ID
	}{{0, 10, []coupon.ID{10, 30, 40}}, {0, 2, []coupon.ID{10, 30}}, {10, 10, []coupon.ID{30, 40}}, {40, 10, nil}} {
		if got := list(c.after, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%d above %d: %v, want %v", c.n, c.after, got, c.want)
		}
	}
	keep(30, 4, true)
	keep(30, 3, false)
	if got := list(0, 10); !slices.Equal(got, []coupon.ID{10, 40}) {
		t.Errorf("after a void %v", got)
	}
}

// testOrderCoupons has an order that redeemed coupons of several shards, some of
// which were voided or redeemed by another order since, which its rows do not know.
func testOrderCoupons(t *testing.T, p *couponsql.Platform) {
	const order = "consumer"
	service := coupon.NewService(p.Store, p.Control, coupon.Options{})
	defer service.Close()
	var want []coupon.ID
	for i := range 20 {
		c := sample(t, coupon.ID(2_000+i)<<10|coupon.ID(i*7%shard.Count))
		write(t, p.Store, c.ID, func(tx coupon.Tx) error { return tx.Add([]coupon.Coupon{c}) })
		c.Version, c.Status, c.RedeemedOrder = 2, coupon.Redeemed, order
		switch {
		case i%4 == 1:
			c.Status, c.RedeemedOrder = coupon.Issued, ""
		case i == 10:
			c.RedeemedOrder = "another"
		default:
			want = append(want, c.ID)
		}
		write(t, p.Store, c.ID, func(tx coupon.Tx) error {
			return tx.Change(c, coupon.Event{Coupon: c.ID, Version: 2, Type: coupon.WasRedeemed, Order: order})
		})
		write(t, p.Store, shard.Text(order), func(tx coupon.Tx) error {
			return tx.KeepRedemption(coupon.OrderRedemption{Order: order, Coupon: c.ID, Version: 2})
		})
	}
	for _, n := range []int{1, 3, 14, 15, 500} {
		var got []coupon.ID
		var after coupon.ID
		for {
			page, err := service.OrderCoupons(t.Context(), order, coupon.OrderConsumed, after, n)
			if err != nil || len(page) > n {
				t.Fatalf("page of %d: %d, %v", n, len(page), err)
			}
			for _, c := range page {
				got, after = append(got, c.ID), c.ID
			}
			if len(page) < n {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %v, want %v", n, got, want)
		}
	}
	if _, err := service.OrderCoupons(t.Context(), order, "other", 0, 5); !errors.Is(err, coupon.ErrInvalid) {
		t.Errorf("another role: %v", err)
	}
}

// testProjection applies the messages of coupons' lives, each one to three times
// and in any order, and wants what their last versions say.
func testProjection(t *testing.T, s coupon.Store) {
	for round := range 12 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { projectOnce(t, s, rand.New(rand.NewPCG(seed, 0)), round) })
	}
}

func projectOnce(t *testing.T, s coupon.Store, r *rand.Rand, round int) {
	user, order := fmt.Sprintf("u%d-%d", round, r.Uint32()), fmt.Sprintf("o%d-%d", round, r.Uint32())
	var messages []coupon.Message
	wallet, redeemed := map[coupon.ID]coupon.Coupon{}, map[coupon.ID]bool{}
	for range 1 + r.IntN(4) {
		c := sample(t, coupon.ID(r.Int64N(1<<40)+1)<<10|coupon.ID(r.IntN(shard.Count)))
		if r.IntN(4) > 0 && !shard.Same(c.ID, shard.Text(user)) {
			c.User = user // otherwise bearer, or its own transaction keeps it
		}
		life := lifeOf(c, order, 1+r.IntN(6))
		last := life[len(life)-1]
		if c.User != "" {
			wallet[c.ID] = last.Coupon
		}
		for _, m := range life {
			switch m.Event.Type {
			case coupon.WasRedeemed:
				redeemed[c.ID] = true
			case coupon.WasVoided:
				delete(redeemed, c.ID)
			}
			messages = append(messages, slices.Repeat([]coupon.Message{m}, 1+r.IntN(3))...)
		}
	}
	r.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
	projector := coupon.NewProjector(s)
	for _, m := range messages {
		if err := projector.Apply(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	got := walletOf(t, s, user)
	if len(got) != len(wallet) {
		t.Errorf("%d coupons in the wallet, want %d", len(got), len(wallet))
	}
	for _, c := range got {
		w := wallet[c.ID]
		if c.Version != w.Version || c.Status != w.Status || c.RedeemedOrder != w.RedeemedOrder || c.Code != w.Code || !c.ReservedUntil.Equal(w.ReservedUntil) {
			t.Errorf("coupon %d: %+v, want %+v", c.ID, c, w)
		}
	}
	err := s.Read(t.Context(), shard.Text(order), func(rows coupon.Rows) error {
		ids, err := rows.Redeemed(order, 0, 100)
		if len(ids) != len(redeemed) || slices.ContainsFunc(ids, func(id coupon.ID) bool { return !redeemed[id] }) {
			t.Errorf("the order redeemed %v, want %v", ids, redeemed)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lifeOf returns n messages of a coupon from when it is issued on, by rising
// version.
func lifeOf(c coupon.Coupon, order string, n int) (life []coupon.Message) {
	for i := range n {
		c.Version++
		e := coupon.Event{Coupon: c.ID, Version: c.Version, At: time.UnixMilli(int64(2000 + i))}
		switch i {
		case 0:
			e.Type, c.Status, c.Valid.Until = coupon.WasClaimed, coupon.Issued, time.UnixMilli(9000)
		case 1, 3:
			e.Type, c.Status, c.ReservedUntil = coupon.WasReserved, coupon.Reserved, time.UnixMilli(int64(8000+i))
		case 2:
			e.Type, c.Status, c.ReservedUntil = coupon.WasReleased, coupon.Issued, time.Time{}
		case 4:
			e.Type, c.Status, c.RedeemedOrder, c.ReservedUntil = coupon.WasRedeemed, coupon.Redeemed, order, time.Time{}
		case 5:
			e.Type, e.Order, c.Status, c.RedeemedOrder = coupon.WasVoided, order, coupon.Issued, ""
		}
		life = append(life, coupon.Message{Event: e, Coupon: c})
	}
	return life
}

func walletOf(t *testing.T, s coupon.Store, user string) (all []coupon.Coupon) {
	t.Helper()
	err := s.Read(t.Context(), shard.Text(user), func(rows coupon.Rows) error {
		page, err := rows.Wallet(user, coupon.WalletFilter{}, coupon.WalletKey{}, 500)
		all = page.Coupons
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// testBulkProjection: a message of a bulk step has no codes, and its coupons may
// have changed since. Generated and bearer coupons are in no wallet.
func testBulkProjection(t *testing.T, s coupon.Store) {
	const user = "bulk user"
	at := shard.Shard((int(shard.Text(user).Bucket().Shard()) + 1) % shard.Count)
	var stock []coupon.Coupon
	var ids []coupon.ID
	for i := range 300 {
		stock = append(stock, sample(t, coupon.ID(900+i)<<10|coupon.ID(at)))
		ids = append(ids, stock[i].ID)
	}
	write(t, s, at, func(tx coupon.Tx) error { return tx.Add(stock) })
	like := stock[0]
	like.User, like.Order, like.Version, like.Status, like.Valid.Until = user, "big", 2, coupon.Issued, time.UnixMilli(9000)
	var refs []coupon.Ref
	for _, c := range stock[:299] {
		refs = append(refs, coupon.Ref{ID: c.ID, Code: c.Code})
	}
	write(t, s, at, func(tx coupon.Tx) error { _, err := tx.IssueAll(refs, like); return err })
	redeemed := like
	redeemed.Version, redeemed.Status, redeemed.RedeemedOrder = 3, coupon.Redeemed, "o"
	write(t, s, at, func(tx coupon.Tx) error {
		return tx.Change(redeemed, coupon.Event{Coupon: like.ID, Version: 3, Type: coupon.WasRedeemed, Order: "o"})
	})

	projector := coupon.NewProjector(s)
	bearer := like
	bearer.User = ""
	for _, m := range []coupon.Message{
		{Event: coupon.Event{Type: coupon.WasIssued}, Coupon: bearer, IDs: ids},
		{Event: coupon.Event{Type: coupon.WasGenerated}, Coupon: stock[0], IDs: ids},
	} {
		if err := projector.Apply(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if got := walletOf(t, s, user); len(got) > 0 {
		t.Fatalf("%d coupons in the wallet, want none yet", len(got))
	}
	for range 2 {
		if err := projector.Apply(t.Context(), coupon.Message{Event: coupon.Event{Type: coupon.WasIssued}, Coupon: like, IDs: ids}); err != nil {
			t.Fatal(err)
		}
	}
	got := walletOf(t, s, user)
	if len(got) != 299 {
		t.Fatalf("%d coupons in the wallet, want the 299 that were issued", len(got))
	}
	for _, c := range got {
		i := slices.Index(ids, c.ID)
		want := coupon.Issued
		if i == 0 {
			want = coupon.Redeemed
		}
		if c.Code != stock[i].Code || c.Status != want {
			t.Errorf("coupon %d: %+v", i, c)
		}
	}
}

// TestProjectionSaysWhatFailed: the reader decides by the error whether it was the
// message.
func TestProjectionSaysWhatFailed(t *testing.T) {
	m := lifeOf(sample(t, 5<<10|1), "o", 5)[4]
	m.Coupon.User = "a user of shard 2, or so"
	for shard.Same(m.Coupon.ID, shard.Text(m.Coupon.User)) {
		m.Coupon.User += "!"
	}
	err := coupon.NewProjector(awayStore{}).Apply(t.Context(), m)
	want := fmt.Sprintf("wallet row of coupon %d, version 6: %v", m.Coupon.ID, shard.ErrUnavailable)
	if !errors.Is(err, shard.ErrUnavailable) || err.Error() != want {
		t.Errorf("%s", cmp.Diff(want, fmt.Sprint(err)))
	}
}

type awayStore struct{ coupon.Store }

func (awayStore) Write(context.Context, shard.Key, func(coupon.Tx) error) error {
	return shard.ErrUnavailable
}
