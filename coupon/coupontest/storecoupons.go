package coupontest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

func testCoupons(t *testing.T, s *storeTest) {
	const at = shard.Shard(17)
	added := s.add(t, at, 3)
	s.holds(t, added...)
	byCode := read(t, s, at, func(rows coupon.Rows) (coupon.Coupon, error) { return rows.ByCode(added[1].Code) })
	equal(t, byCode, added[1])

	unknown := s.coupon(at)
	some := read(t, s, at, func(rows coupon.Rows) ([]coupon.Coupon, error) {
		return rows.Coupons([]coupon.ID{added[2].ID, unknown.ID, added[0].ID})
	})
	slices.SortFunc(some, func(a, b coupon.Coupon) int { return int(a.ID - b.ID) })
	equal(t, some, []coupon.Coupon{added[0], added[2]})
	equal(t, read(t, s, at, func(rows coupon.Rows) ([]coupon.Coupon, error) { return rows.Coupons(nil) }), []coupon.Coupon{})

	wantErr(t, s.Read(t.Context(), at, func(rows coupon.Rows) error {
		_, err := rows.Coupon(unknown.ID)
		return err
	}), coupon.ErrNoRow)
	wantErr(t, s.Read(t.Context(), at, func(rows coupon.Rows) error {
		_, err := rows.ByCode(unknown.Code)
		return err
	}), coupon.ErrNoRow)
}

// testChanges changes every field that can change, and then back to none.
func testChanges(t *testing.T, s *storeTest) {
	c := s.add(t, 3, 1)[0]
	next := c
	next.Version, next.Status = 2, coupon.Redeemed
	next.User, next.Order, next.ReservedOrder, next.RedeemedOrder, next.RedeemedUser = "u!", "o~", "ro", "RO", "ru"
	next.IssuedAt, next.ReservedUntil, next.RedeemedAt, next.Updated = day(2), day(3), day(4), day(5)
	next.Valid = coupon.Window{From: day(6), Until: day(7)}
	next.Kind, next.Value, next.VoidPolicy = "OTHER", coupon.Amount{Minor: 1 << 62, Currency: "JPY"}, coupon.VoidPolicy{Kind: "NEVER"}
	next.Attributes = nil
	wrong := next
	wrong.Code, wrong.Campaign, wrong.Created = s.codes.New(3), 1, day(9)
	s.change(t, wrong, coupon.WasRedeemed, true)
	s.holds(t, next)

	last := c
	last.Version, last.Updated = 3, day(8)
	s.change(t, last, coupon.WasVoided, true)
	s.holds(t, last)

	stale := next
	s.change(t, stale, coupon.WasReserved, false)
	skipping := last
	skipping.Version = 5
	s.change(t, skipping, coupon.WasReserved, false)
	missing := s.coupon(3)
	missing.Version = 2
	s.change(t, missing, coupon.WasReserved, false)
	s.holds(t, last)
	equal(t, s.events(t, c.ID), []coupon.Event{event(next, coupon.WasRedeemed), event(last, coupon.WasVoided)})
}

// change makes a change and fails the test unless it is made if want is, and
// nothing if not.
func (s *storeTest) change(t *testing.T, c coupon.Coupon, typ coupon.EventType, want bool) {
	t.Helper()
	err := s.Write(t.Context(), c.ID, func(tx coupon.Tx) error { return tx.Change(c, event(c, typ)) })
	if want && err != nil || !want && !errors.Is(err, shard.ErrNoMatch) {
		t.Errorf("version %d: %v, want it changed: %v", c.Version, err, want)
	}
}

func (s *storeTest) events(t *testing.T, id coupon.ID) []coupon.Event {
	t.Helper()
	return read(t, s, id, func(rows coupon.Rows) ([]coupon.Event, error) { return rows.Events(id) })
}

// testLedger holds that what may happen once does, and that a transaction that
// tries it again changes nothing.
func testLedger(t *testing.T, s *storeTest) {
	c := s.add(t, 0, 1)[0]
	equal(t, s.events(t, c.ID), []coupon.Event{})
	step := func(order string) coupon.Coupon {
		next := c
		next.Version, next.RedeemedOrder = c.Version+1, order
		return next
	}
	for _, typ := range []coupon.EventType{coupon.WasReserved, coupon.WasReleased, coupon.WasReserved, coupon.WasRedeemed} {
		c = step("order")
		s.change(t, c, typ, true)
	}
	before := s.events(t, c.ID)
	again := step("order")
	wantErr(t, s.Write(t.Context(), c.ID, func(tx coupon.Tx) error {
		return tx.Change(again, event(again, coupon.WasRedeemed))
	}), shard.ErrDuplicate)
	s.holds(t, c)
	equal(t, s.events(t, c.ID), before)

	c = step("ORDER") // another one
	s.change(t, c, coupon.WasRedeemed, true)
	other := s.add(t, 0, 1)[0]
	other.Version, other.RedeemedOrder = 2, "order" // of another coupon
	s.change(t, other, coupon.WasRedeemed, true)
}

func testChangeRace(t *testing.T, s *storeTest) {
	c := s.add(t, 9, 1)[0]
	for round := range 5 {
		before := c
		won := together(t, 8, func(i int) (won bool, err error) {
			next := issued(before, fmt.Sprintf("user%d", i))
			err = s.Write(t.Context(), c.ID, func(tx coupon.Tx) (err error) {
				if _, err = tx.Coupon(c.ID); err != nil {
					return err
				}
				if err = tx.Change(next, event(next, coupon.WasClaimed)); err == nil {
					err = tx.Keep(next) // goes with it, if that matched
				}
				return err
			})
			if errors.Is(err, shard.ErrNoMatch) {
				return false, nil
			}
			return err == nil, err
		})
		if won != 1 {
			t.Fatalf("round %d: %d changes of one version", round, won)
		}
		c = read(t, s, c.ID, func(rows coupon.Rows) (coupon.Coupon, error) { return rows.Coupon(c.ID) })
		if events := s.events(t, c.ID); len(events) != round+1 || events[round].User != c.User {
			t.Fatalf("round %d: owner %s, ledger %v", round, c.User, events)
		}
	}
}

func testAdd(t *testing.T, s *storeTest) {
	many := s.add(t, 31, 500)
	got := read(t, s, shard.Shard(31), func(rows coupon.Rows) ([]coupon.Coupon, error) { return rows.Coupons(ids(many)) })
	slices.SortFunc(got, func(a, b coupon.Coupon) int { return int(a.ID - b.ID) })
	equal(t, got, many)

	fresh, sameID, sameCode := s.coupon(31), s.coupon(31), s.coupon(31)
	sameID.ID, sameCode.Code = many[250].ID, many[250].Code
	for _, there := range []coupon.Coupon{sameID, sameCode} {
		wantErr(t, s.Write(t.Context(), fresh.ID, func(tx coupon.Tx) error {
			return tx.Add([]coupon.Coupon{fresh, there})
		}), shard.ErrDuplicate)
	}
	wantErr(t, s.Read(t.Context(), fresh.ID, func(rows coupon.Rows) error {
		_, err := rows.Coupon(fresh.ID)
		return err
	}), coupon.ErrNoRow)
	s.holds(t, many[250])
}

func testIssueAll(t *testing.T, s *storeTest) {
	stock := s.add(t, 5, 6)
	s.change(t, issued(stock[1], "first"), coupon.WasClaimed, true)
	s.change(t, issued(stock[4], "first"), coupon.WasClaimed, true)
	like := issued(stock[0], "")
	like.Order, like.Attributes = "order", nil
	asked := refs(stock[:5])
	slices.Reverse(asked)
	s.write(t, shard.Shard(5), func(tx coupon.Tx) error {
		got, err := tx.IssueAll(asked, like)
		equal(t, got, []coupon.Ref{asked[1], asked[2], asked[4]})
		return err
	})
	for _, i := range []int{0, 2, 3} {
		want := like
		want.ID, want.Code = stock[i].ID, stock[i].Code
		s.holds(t, want)
	}
	s.holds(t, issued(stock[1], "first"), issued(stock[4], "first"), stock[5])
	s.write(t, shard.Shard(5), func(tx coupon.Tx) error {
		got, err := tx.IssueAll(asked, like)
		equal(t, got, []coupon.Ref{})
		return err
	})
}

// testIssueRace gives overlapping parts of a stock to several orders.
func testIssueRace(t *testing.T, s *storeTest) {
	stock := s.add(t, 8, 120)
	var mu sync.Mutex
	owner := map[coupon.ID]string{}
	together(t, 6, func(i int) (bool, error) {
		order := fmt.Sprintf("order%d", i)
		part := refs(slices.Concat(stock[i*20:], stock[:i*20]))[:60]
		var got []coupon.Ref
		err := s.Write(t.Context(), shard.Shard(8), func(tx coupon.Tx) (err error) {
			like := issued(stock[0], "")
			like.Order = order
			got, err = tx.IssueAll(part, like)
			return err
		})
		mu.Lock()
		defer mu.Unlock()
		for _, r := range got {
			if before, twice := owner[r.ID]; twice {
				return false, fmt.Errorf("coupon %d given to %s and %s", r.ID, before, order)
			}
			owner[r.ID] = order
		}
		return true, err
	})
	for _, c := range read(t, s, shard.Shard(8), func(rows coupon.Rows) ([]coupon.Coupon, error) { return rows.Coupons(ids(stock)) }) {
		if c.Order != owner[c.ID] {
			t.Fatalf("coupon %d is order %q's, given to %q", c.ID, c.Order, owner[c.ID])
		}
	}
	if len(owner) != len(stock) {
		t.Fatalf("%d of %d coupons given", len(owner), len(stock))
	}
}
