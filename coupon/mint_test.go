package coupon_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/shard"
)

// in2026 begins a bubble's clock at a time that ids have.
func in2026(t *testing.T, test func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)))
		test(t)
	})
}

// openMinter opens a minter that is closed at the test's end.
func openMinter(t testing.TB, workers coupon.Workers, setup coupon.MinterSetup) *coupon.Minter {
	t.Helper()
	m := coupon.OpenMinterSetup(t.Context(), workers, coupon.MinterOptions{}, setup)
	t.Cleanup(func() { m.Close(context.Background()) })
	return m
}

func mint(t testing.TB, m *coupon.Minter, b shard.Bucket) coupon.IDParts {
	t.Helper()
	id, err := m.Mint(b)
	if err != nil {
		t.Fatal(err)
	}
	if id <= 0 || id.Bucket() != b || id.Shard() != b.Shard() || int64(id)%32 != int64(b.Shard()) {
		t.Fatalf("id %d is not of bucket %d", id, b)
	}
	return coupon.PartsOf(id)
}

// refused expects minting to fail with ErrNoIDs.
func refused(t testing.TB, m *coupon.Minter) string {
	t.Helper()
	id, err := m.Mint(0)
	if !errors.Is(err, coupon.ErrNoIDs) {
		t.Fatalf("got id %d, %v, want a refusal", id, err)
	}
	return err.Error()
}

func TestIDsCarryTimeWorkerSequenceAndBucket(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(coupontest.Workers)
		m := openMinter(t, workers, coupon.MinterSetup{})
		number, _ := m.LeasedNumber()
		now := time.Now().UnixMilli()
		for _, want := range []coupon.IDParts{
			{now, number, 0, 7}, {now, number, 1, 7}, {now, number, 0, 1023}, {now, number, 2, 7}, {now, number, 0, 0},
		} {
			if got := mint(t, m, want.Bucket); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		time.Sleep(5 * time.Millisecond)
		if got, want := mint(t, m, 7), (coupon.IDParts{Ms: now + 5, Worker: number, Bucket: 7}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestBucketRunsAheadWhenItsMsIsUsedUp(t *testing.T) {
	in2026(t, func(t *testing.T) {
		m := openMinter(t, new(coupontest.Workers), coupon.MinterSetup{})
		now := time.Now().UnixMilli()
		for i := range 100 {
			if got := mint(t, m, 5); got.Ms != now+int64(i/16) || got.Sequence != i%16 {
				t.Fatalf("id %d is %+v", i, got)
			}
		}
		if got := mint(t, m, 6); got.Ms != now {
			t.Errorf("another bucket ran ahead too: %+v", got)
		}
		time.Sleep(2 * time.Millisecond)
		if got := mint(t, m, 5); got.Ms != now+6 || got.Sequence != 4 { // it is still ahead
			t.Errorf("got %+v", got)
		}
	})
}

// TestHighWaterIsNeverPassed uses up one bucket's minute at one instant.
func TestHighWaterIsNeverPassed(t *testing.T) {
	in2026(t, func(t *testing.T) {
		workers := new(coupontest.Workers)
		m := openMinter(t, workers, coupon.MinterSetup{})
		number, _ := m.LeasedNumber()
		high := time.Now().Add(time.Minute).UnixMilli()
		if got := workers.Row(number).HighWater; got != high {
			t.Fatalf("the high-water is at %d, want %d, a minute ahead", got, high)
		}
		var last coupon.IDParts
		for range 16 * 60_001 {
			last = mint(t, m, 5)
		}
		if last.Ms != high || last.Sequence != 15 {
			t.Errorf("the last id is %+v, want one at the high-water %d", last, high)
		}
		refusedBucket(t, m, 5)
		mint(t, m, 6)
		time.Sleep(leaseRetry) // a refusal has the lease renewed
		if got := mint(t, m, 5); got.Ms != high+1 {
			t.Errorf("after the renewal: %+v", got)
		}
	})
}

// leaseRetry is a little more than it takes to look after a lease again.
const leaseRetry = 1010 * time.Millisecond

func refusedBucket(t *testing.T, m *coupon.Minter, b shard.Bucket) {
	t.Helper()
	if id, err := m.Mint(b); !errors.Is(err, coupon.ErrNoIDs) {
		t.Fatalf("got id %d, %v, want a refusal", id, err)
	}
}

func TestDirectIssueFollowsTheUser(t *testing.T) {
	m := openMinter(t, new(coupontest.Workers), coupon.MinterSetup{})
	for _, user := range []shard.Text{"alice", "bob", "carol"} {
		id, err := m.Mint(user.Bucket())
		if err != nil || !shard.Same(id, user) {
			t.Errorf("id %d of %s, %v, is on another shard", id, user, err)
		}
	}
}

func TestConcurrentCallersGetDifferentIDs(t *testing.T) {
	m := openMinter(t, new(coupontest.Workers), coupon.MinterSetup{})
	var mu sync.Mutex
	var all sync.WaitGroup
	seen := map[coupon.ID]bool{}
	for range 8 {
		all.Go(func() {
			var mine []coupon.ID
			for i := range 5000 {
				id, err := m.Mint(shard.Bucket(i % 3))
				if err != nil {
					t.Error(err)
					return
				}
				mine = append(mine, id)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, id := range mine {
				seen[id] = true
			}
		})
	}
	all.Wait()
	if len(seen) != 8*5000 {
		t.Errorf("%d different ids, want %d", len(seen), 8*5000)
	}
}

// TestLastIDIsPositive sets the clock to where the 41 bits end.
func TestLastIDIsPositive(t *testing.T) {
	end := time.UnixMilli(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() + 1<<41 - 1)
	clock := func() time.Time { return end }
	m := coupon.NewMinterByHand(&coupontest.Workers{Clock: clock}, coupon.MinterSetup{Clock: clock})
	m.Tend(t.Context())
	var last coupon.ID
	for range 16 {
		id, err := m.Mint(1023)
		if err != nil {
			t.Fatal(err)
		}
		last = id
	}
	if number, _ := m.LeasedNumber(); int64(last) != math.MaxInt64-int64(255-number)<<14 {
		t.Errorf("the last id of worker number %d is %d", number, last)
	}
	refusedBucket(t, m, 1023)
}

func BenchmarkMint(b *testing.B) {
	m := openMinter(b, new(coupontest.Workers), coupon.MinterSetup{})
	rounds := coupon.NewRounds(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Mint(rounds.Next()); err != nil {
			b.Fatal(err)
		}
	}
}
