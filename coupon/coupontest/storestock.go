package coupontest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

func testStock(t *testing.T, s *storeTest) {
	const at = shard.Shard(2)
	stock := s.add(t, at, 6)
	s.change(t, issued(stock[2], "user"), coupon.WasClaimed, true)
	other := s.coupon(at)
	other.Campaign++
	s.write(t, at, func(tx coupon.Tx) error { return tx.Add([]coupon.Coupon{other}) })
	for _, c := range []struct {
		after coupon.ID
		n     int
		want  []coupon.Coupon
	}{
		{0, 10, []coupon.Coupon{stock[0], stock[1], stock[3], stock[4], stock[5]}},
		{0, 3, []coupon.Coupon{stock[0], stock[1], stock[3]}},
		{stock[1].ID, 2, []coupon.Coupon{stock[3], stock[4]}},
		{stock[5].ID, 2, nil},
	} {
		got := read(t, s, at, func(rows coupon.Rows) ([]coupon.Ref, error) { return rows.Stock(s.campaign, c.after, c.n) })
		equal(t, got, refs(c.want))
	}
}

// advance moves the cursor and returns what it gives.
func (s *storeTest) advance(t *testing.T, at shard.Shard, n int) (got []coupon.Ref, end bool, err error) {
	err = s.Write(t.Context(), at, func(tx coupon.Tx) (err error) {
		got, end, err = tx.Advance(s.campaign, n)
		return err
	})
	return got, end, err
}

func testAdvance(t *testing.T, s *storeTest) {
	const at = shard.Shard(25)
	expect := func(n int, want []coupon.Coupon, wantEnd bool) {
		t.Helper()
		got, end, err := s.advance(t, at, n)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, got, refs(want))
		if end != wantEnd {
			t.Fatalf("end: %v, want %v", end, wantEnd)
		}
	}
	expect(3, nil, true)
	stock := s.add(t, at, 7)
	other := s.coupon(at)
	other.Campaign++
	s.write(t, at, func(tx coupon.Tx) error { return tx.Add([]coupon.Coupon{other}) })
	for _, i := range []int{1, 3, 4} {
		s.change(t, issued(stock[i], "user"), coupon.WasClaimed, true)
	}
	undone := errors.New("undone")
	wantErr(t, s.Write(t.Context(), at, func(tx coupon.Tx) error {
		if _, _, err := tx.Advance(s.campaign, 5); err != nil {
			return err
		}
		return undone
	}), undone)
	expect(3, []coupon.Coupon{stock[0], stock[2]}, false)
	expect(2, nil, false) // both taken: there may be more beyond
	expect(5, []coupon.Coupon{stock[5], stock[6]}, true)
	expect(5, nil, true)
	more := s.add(t, at, 1)
	expect(5, more, true)
}

// testAdvanceRace has eight processes that share a cursor.
func testAdvanceRace(t *testing.T, s *storeTest) {
	const at = shard.Shard(14)
	stock := s.add(t, at, 203)
	var mu sync.Mutex
	given := map[coupon.ID]bool{}
	together(t, 8, func(int) (bool, error) {
		for {
			got, end, err := s.advance(t, at, 10)
			if err != nil {
				return false, err
			}
			mu.Lock()
			for _, r := range got {
				if given[r.ID] {
					err = fmt.Errorf("coupon %d was given twice", r.ID)
				}
				given[r.ID] = true
			}
			mu.Unlock()
			if err != nil || end {
				return true, err
			}
		}
	})
	if len(given) != len(stock) {
		t.Fatalf("%d of %d coupons were given", len(given), len(stock))
	}
}

func testTransactions(t *testing.T, s *storeTest) {
	c := s.add(t, 1, 1)[0]
	undone := errors.New("undone")
	next := issued(c, s.user(1, "tx"))
	wantErr(t, s.Write(t.Context(), c.ID, func(tx coupon.Tx) error {
		if err := tx.Change(next, event(next, coupon.WasClaimed)); err != nil {
			t.Error(err)
		}
		if seen, err := tx.Coupon(c.ID); err != nil || seen.Version != next.Version {
			t.Errorf("a transaction sees version %d of its own change to %d: %v", seen.Version, next.Version, err)
		}
		if err := tx.Keep(next); err != nil {
			t.Error(err)
		}
		return undone
	}), undone)
	s.holds(t, c)
	equal(t, s.events(t, c.ID), []coupon.Event{})
	if all, _ := s.walk(t, next.User, coupon.WalletFilter{}, 1); len(all) > 0 {
		t.Errorf("wallet has %v of a transaction that was undone", all)
	}
	s.write(t, c.ID, func(tx coupon.Tx) error {
		if off := time.Since(tx.Now()); off < -time.Minute || off > time.Minute || !tx.Now().Equal(tx.Now().Truncate(time.Millisecond)) {
			t.Errorf("Now is %v, %v from this process's", tx.Now(), off)
		}
		return nil
	})
}

func testFanOut(t *testing.T, s *storeTest) {
	var mu sync.Mutex
	found := map[shard.Shard]int{}
	s.add(t, 7, 2)
	s.add(t, 23, 1)
	budget := shard.Budget{Shards: shard.Count, Parallel: 4, Time: time.Minute}
	err := s.FanOut(t.Context(), "suite", budget, nil, func(at shard.Shard, rows coupon.Rows) error {
		stock, err := rows.Stock(s.campaign, 0, 10)
		mu.Lock()
		defer mu.Unlock()
		found[at] = len(stock)
		return err
	})
	if err != nil || len(found) != shard.Count || found[7] != 2 || found[23] != 1 || found[0] != 0 {
		t.Fatalf("found %v: %v", found, err)
	}
	budget.Shards = 1
	wantErr(t, s.FanOut(t.Context(), "suite", budget, nil, nil), shard.ErrBudget)
}
