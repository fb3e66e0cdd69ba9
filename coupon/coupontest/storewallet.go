package coupontest

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// kept returns a coupon of a user as a wallet shows it.
func (s *storeTest) kept(user string, until time.Time) coupon.Coupon {
	c := issued(s.coupon(shard.Shard(s.lastID.Load()%shard.Count)), user)
	return coupon.Coupon{
		ID: c.ID, Code: c.Code, Campaign: c.Campaign, Value: c.Value, Status: c.Status, User: user, Order: "order",
		Valid: coupon.Window{From: day(1), Until: until}, Version: 7,
	}
}

// keep writes coupons into the wallet of their user.
func (s *storeTest) keep(t *testing.T, coupons ...coupon.Coupon) {
	t.Helper()
	for some := range slices.Chunk(coupons, 250) {
		s.write(t, shard.Text(some[0].User), func(tx coupon.Tx) error {
			for _, c := range some {
				if err := tx.Keep(c); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// walk reads a wallet in pages of n and returns all of it and how many pages
// that took. It fails the test if it makes no headway.
func (s *storeTest) walk(t *testing.T, user string, f coupon.WalletFilter, n int) (all []coupon.Coupon, pages int) {
	t.Helper()
	var after coupon.WalletKey
	for end := false; !end; pages++ {
		page := read(t, s, shard.Text(user), func(rows coupon.Rows) (coupon.WalletPage, error) { return rows.Wallet(user, f, after, n) })
		if len(page.Coupons) > n {
			t.Fatalf("page of %d coupons, want at most %d", len(page.Coupons), n)
		}
		if !page.End && page.Next == after {
			t.Fatalf("page stands still at %v", after)
		}
		all, after, end = append(all, page.Coupons...), page.Next, page.End
	}
	return all, pages
}

// byEnd orders coupons as wallets do.
func byEnd(a, b coupon.Coupon) int {
	return cmp.Or(a.Valid.Until.Compare(b.Valid.Until), cmp.Compare(a.ID, b.ID))
}

func testWallet(t *testing.T, s *storeTest) {
	user := s.user(4, "wallet")
	equal(t, read(t, s, shard.Text(user), func(rows coupon.Rows) (coupon.WalletPage, error) {
		return rows.Wallet(user, coupon.WalletFilter{}, coupon.WalletKey{}, 3)
	}), coupon.WalletPage{End: true})

	var all []coupon.Coupon
	for i := range 10 { // many that end at the same time
		all = append(all, s.kept(user, day(20-i/5)))
	}
	all[2].Status, all[2].RedeemedOrder, all[2].RedeemedAt = coupon.Redeemed, "by", day(3)
	all[3].Status, all[3].ReservedUntil = coupon.Reserved, day(4)
	s.keep(t, all...)
	s.keep(t, s.kept(s.user(4, "other"), day(20)), s.kept(s.user(4, "WALLET"), day(20)))
	slices.SortFunc(all, byEnd)
	for _, n := range []int{1, 3, 5, 10, 500} {
		got, pages := s.walk(t, user, coupon.WalletFilter{}, n)
		equal(t, got, all)
		if want := (10 + n - 1) / n; pages != want {
			t.Errorf("%d pages of %d, want %d", pages, n, want)
		}
	}

	older, newer := all[0], all[1]
	older.Version, older.Status = 6, coupon.Redeemed
	newer.Version, newer.Status, newer.RedeemedOrder, newer.Valid.Until = 8, coupon.Redeemed, "new", day(25)
	same := all[4]
	same.Status = coupon.Voided
	s.keep(t, older, newer, same)
	all[1] = newer
	slices.SortFunc(all, byEnd)
	got, _ := s.walk(t, user, coupon.WalletFilter{}, 4)
	equal(t, got, all)
}

// testWalletKeepsStatus: what changes in a coupon that has its user is brought into
// the wallet's row, and what is in no wallet comes into none. What is new is in none.
func testWalletKeepsStatus(t *testing.T, s *storeTest) {
	user := s.user(9, "keeps")
	c := s.kept(user, day(20))
	s.keep(t, c)
	next := c
	next.Version, next.Status, next.Valid.Until = 8, coupon.Redeemed, day(25)
	next.ReservedUntil, next.RedeemedOrder, next.RedeemedAt = day(3), "by", day(4)
	absent, fresh := s.kept(user, day(21)), s.kept(user, day(26))
	s.write(t, shard.Text(user), func(tx coupon.Tx) error {
		for _, c := range []coupon.Coupon{next, absent} {
			if err := tx.KeepStatus(c); err != nil {
				return err
			}
		}
		return tx.KeepNew(fresh)
	})
	wantErr(t, s.Write(t.Context(), shard.Text(user), func(tx coupon.Tx) error { return tx.KeepNew(next) }), shard.ErrDuplicate)
	got, _ := s.walk(t, user, coupon.WalletFilter{}, 4)
	equal(t, got, []coupon.Coupon{next, fresh})
}

// testWalletStatus has a coupon of each status, computed ones included.
func testWalletStatus(t *testing.T, s *storeTest) {
	user, now := s.user(11, "status"), day(10)
	of := map[string]coupon.Coupon{}
	for name, c := range map[string]struct {
		status          coupon.Status
		until, reserved time.Time
	}{
		"issued":         {status: coupon.Issued, until: now.Add(time.Millisecond)},
		"over":           {status: coupon.Issued, until: now},
		"redeemed":       {status: coupon.Redeemed, until: day(3)},
		"held":           {status: coupon.Reserved, until: day(20), reserved: now.Add(time.Millisecond)},
		"held, over":     {status: coupon.Reserved, until: day(3), reserved: now.Add(time.Millisecond)},
		"lapsed":         {status: coupon.Reserved, until: day(20), reserved: now},
		"lapsed, over":   {status: coupon.Reserved, until: day(4), reserved: day(3)},
		"voided":         {status: coupon.Voided, until: day(20)},
		"expired before": {status: coupon.Expired, until: day(5)},
	} {
		kept := s.kept(user, c.until)
		kept.Status, kept.ReservedUntil = c.status, c.reserved
		of[name] = kept
		s.keep(t, kept)
	}
	for _, c := range []struct {
		name   string
		status []coupon.Status
		want   []string
	}{
		{"issued", []coupon.Status{coupon.Issued}, []string{"issued", "lapsed"}},
		{"reserved", []coupon.Status{coupon.Reserved}, []string{"held", "held, over"}},
		{"expired", []coupon.Status{coupon.Expired}, []string{"over", "lapsed, over", "expired before"}},
		{"redeemed or voided", []coupon.Status{coupon.Redeemed, coupon.Voided}, []string{"redeemed", "voided"}},
		{"issued or expired", []coupon.Status{coupon.Expired, coupon.Issued}, []string{"issued", "lapsed", "over", "lapsed, over", "expired before"}},
		{"available", []coupon.Status{coupon.Available}, nil},
	} {
		var want []coupon.Coupon
		for _, name := range c.want {
			want = append(want, of[name])
		}
		slices.SortFunc(want, byEnd)
		got, _ := s.walk(t, user, coupon.WalletFilter{Status: c.status, Now: now.Add(300 * time.Microsecond)}, 2)
		t.Run(c.name, func(t *testing.T) { equal(t, got, want) })
	}
}

// testLongWallet has few coupons that the filter chooses among many that it does
// not.
func testLongWallet(t *testing.T, s *storeTest) {
	user, now := s.user(6, "long"), day(10)
	var all, want []coupon.Coupon
	for i := range 1_300 {
		c := s.kept(user, day(20)) // all end at the same time
		if i%600 == 300 {
			c.Status = coupon.Redeemed
			want = append(want, c)
		}
		all = append(all, c)
	}
	s.keep(t, all...)
	got, pages := s.walk(t, user, coupon.WalletFilter{Status: []coupon.Status{coupon.Redeemed}, Now: now}, 10)
	equal(t, got, want)
	if pages == 1 {
		t.Error("one page looked at 1,300 coupons: want a bound on it")
	}
	for _, c := range []struct {
		status coupon.Status
		now    time.Time
	}{{coupon.Expired, day(10)}, {coupon.Issued, day(25)}} {
		none, pages := s.walk(t, user, coupon.WalletFilter{Status: []coupon.Status{c.status}, Now: c.now}, 10)
		equal(t, none, []coupon.Coupon{})
		if pages != 1 {
			t.Errorf("%d pages to find that none is %v at %v, want 1", pages, c.status, c.now)
		}
	}
}
