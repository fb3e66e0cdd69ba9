package coupontest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// TestStore runs the suite: every method of [coupon.Store] and what it reads and
// writes. open is called once. The store may hold other rows, since the suite
// uses users, campaigns and ids that nobody else has.
func TestStore(t *testing.T, open func(t *testing.T) coupon.Store) {
	store := open(t)
	for name, test := range map[string]func(*testing.T, *storeTest){
		"coupons":             testCoupons,
		"changes":             testChanges,
		"ledger":              testLedger,
		"races of changes":    testChangeRace,
		"adding":              testAdd,
		"issuing":             testIssueAll,
		"races of issuing":    testIssueRace,
		"wallet":              testWallet,
		"wallet keeps status": testWalletKeepsStatus,
		"wallet by status":    testWalletStatus,
		"long wallet":         testLongWallet,
		"claims":              testClaims,
		"pending claims":      testPending,
		"races of claims":     testClaimRace,
		"stock":               testStock,
		"cursor":              testAdvance,
		"races of the cursor": testAdvanceRace,
		"batches":             testBatches,
		"chunks":              testChunks,
		"transactions":        testTransactions,
		"fan-out":             testFanOut,
	} {
		t.Run(name, func(t *testing.T) { test(t, newStoreTest(t, store)) })
	}
}

// A storeTest is one test of a store, with a campaign and ids of its own.
type storeTest struct {
	coupon.Store
	codes    *coupon.Codes
	campaign int64
	lastID   atomic.Int64
	salt     string
}

func newStoreTest(t *testing.T, store coupon.Store) *storeTest {
	key, err := coupon.NewCheckKey("suite", time.Unix(1, 0), make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	codes, err := coupon.NewCodes(key)
	if err != nil {
		t.Fatal(err)
	}
	s := &storeTest{Store: store, codes: codes, campaign: rand.Int64N(1 << 60), salt: fmt.Sprintf("%08x", rand.Uint32())}
	s.lastID.Store(rand.Int64N(1 << 52))
	return s
}

// user returns the name of a user of this test who is on a shard.
func (s *storeTest) user(at shard.Shard, name string) string {
	for i := 0; ; i++ {
		user := fmt.Sprintf("%s/%s%d", name, s.salt, i)
		if shard.Text(user).Bucket().Shard() == at {
			return user
		}
	}
}

// coupon returns a new coupon for a shard, with a rising id, as it is generated.
func (s *storeTest) coupon(at shard.Shard) coupon.Coupon {
	return coupon.Coupon{
		ID: coupon.ID(s.lastID.Add(1)<<10) + coupon.ID(at), Code: s.codes.New(at), Campaign: s.campaign,
		Kind: coupon.FixedAmount, Value: coupon.Amount{Minor: 1250, Currency: "EUR"},
		VoidPolicy: coupon.VoidPolicy{Kind: coupon.Restore, Days: 3}, Attributes: json.RawMessage(`{"b":"ü <&>","a":1}`),
		Version: 1, Created: day(1), Updated: day(1),
	}
}

// add adds n coupons to a shard and returns them.
func (s *storeTest) add(t *testing.T, at shard.Shard, n int) []coupon.Coupon {
	t.Helper()
	coupons := make([]coupon.Coupon, n)
	for i := range coupons {
		coupons[i] = s.coupon(at)
	}
	s.write(t, at, func(tx coupon.Tx) error { return tx.Add(coupons) })
	return coupons
}

// issued returns the next version of a coupon, issued to a user.
func issued(c coupon.Coupon, user string) coupon.Coupon {
	c.Status, c.User, c.Version, c.Updated, c.IssuedAt = coupon.Issued, user, c.Version+1, day(2), day(2)
	c.Valid = coupon.Window{From: day(1), Until: day(30)}
	return c
}

// event returns the event that made a coupon what it is.
func event(c coupon.Coupon, typ coupon.EventType) coupon.Event {
	return coupon.Event{
		Coupon: c.ID, Version: c.Version, Type: typ, At: c.Updated, Actor: "tößt", User: c.User, Order: c.RedeemedOrder, Request: "r" + c.ID.String(),
	}
}

// write runs a transaction that has to succeed.
func (s *storeTest) write(t *testing.T, key shard.Key, fn func(coupon.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), key, fn); err != nil {
		t.Fatal(err)
	}
}

// read reads what has to be readable.
func read[T any](t *testing.T, s *storeTest, key shard.Key, fn func(coupon.Rows) (T, error)) (got T) {
	t.Helper()
	err := s.Read(t.Context(), key, func(rows coupon.Rows) (err error) {
		got, err = fn(rows)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// holds fails the test unless the store has the coupons.
func (s *storeTest) holds(t *testing.T, want ...coupon.Coupon) {
	t.Helper()
	for _, w := range want {
		equal(t, read(t, s, w.ID, func(rows coupon.Rows) (coupon.Coupon, error) { return rows.Coupon(w.ID) }), w)
	}
}

// equal fails the test unless got is want.
func equal(t *testing.T, got, want any) {
	t.Helper()
	sameCode := cmp.Comparer(func(a, b coupon.Code) bool { return a == b })
	if diff := cmp.Diff(want, got, sameCode, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("- want, + got:\n%s", diff)
	}
}

// wantErr fails the test unless err is want.
func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// day returns a day of a month of 2030, at an odd ms.
func day(d int) time.Time { return time.Date(2030, 3, d, 4, 5, 6, 789e6, time.UTC) }

// ids returns the ids of coupons.
func ids(coupons []coupon.Coupon) []coupon.ID {
	all := make([]coupon.ID, len(coupons))
	for i, c := range coupons {
		all[i] = c.ID
	}
	return all
}

// refs returns coupons as the stock lists them.
func refs(coupons []coupon.Coupon) []coupon.Ref {
	all := make([]coupon.Ref, len(coupons))
	for i, c := range coupons {
		all[i] = coupon.Ref{ID: c.ID, Code: c.Code}
	}
	return all
}

// together runs fn n times at once and returns how often it reported true.
func together(t *testing.T, n int, fn func(i int) (bool, error)) int64 {
	t.Helper()
	var won atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			did, err := fn(i)
			if err != nil {
				t.Error(err)
			}
			if did {
				won.Add(1)
			}
		})
	}
	all.Wait()
	return won.Load()
}
