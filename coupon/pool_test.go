package coupon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// A stockStore is a store that is asked for nothing but the stock of one campaign,
// of which each shard has as many coupons.
type stockStore struct {
	Store // for what is not asked

	mu    sync.Mutex
	stock [shard.Count][]Ref
	next  [shard.Count]int // the cursor
	used  map[ID]bool
	gone  map[shard.Shard]bool // do not answer
	asked [shard.Count]int
}

// newStock returns a pool on such a store, and its campaign.
func newStock(t *testing.T, each int) (*stockStore, *pool, Campaign) {
	s := &stockStore{used: map[ID]bool{}, gone: map[shard.Shard]bool{}}
	for at := range s.stock {
		for i := range each {
			s.stock[at] = append(s.stock[at], Ref{ID: ID(1024*(i+1) + at)})
		}
	}
	var fills sync.WaitGroup
	ctx, end := context.WithCancel(t.Context())
	p := &pool{store: &healthyStore{Store: s}, slices: map[sliceKey]*slice{}}
	p.spawn = func(fill func(context.Context)) { fills.Go(func() { fill(ctx) }) }
	t.Cleanup(func() { end(); fills.Wait() })
	total := int64(each * shard.Count)
	return s, p, Campaign{ID: 1, Total: total, Generated: total}
}

func (s *stockStore) Write(ctx context.Context, key shard.Key, fn func(Tx) error) error {
	return s.call(ctx, key.Bucket().Shard(), func(tx stockTx) error { return fn(tx) })
}

func (s *stockStore) Read(ctx context.Context, key shard.Key, fn func(Rows) error) error {
	return s.call(ctx, key.Bucket().Shard(), func(tx stockTx) error { return fn(tx) })
}

func (s *stockStore) call(ctx context.Context, at shard.Shard, fn func(stockTx) error) error {
	s.mu.Lock()
	s.asked[at]++
	gone := s.gone[at]
	s.mu.Unlock()
	if gone {
		<-ctx.Done()
		return shard.ErrUnavailable
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fn(stockTx{s: s, at: at})
}

// use takes a coupon, and reports whether it was there to be taken.
func (s *stockStore) use(r Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.used[r.ID]
	s.used[r.ID] = true
	return !before
}

// let makes shards go or come back.
func (s *stockStore) let(gone bool, shards ...shard.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range shards {
		s.gone[at] = gone
	}
}

type stockTx struct {
	Tx // for what is not asked
	s  *stockStore
	at shard.Shard
}

func (t stockTx) Advance(_ int64, n int) ([]Ref, bool, error) {
	from := t.s.next[t.at]
	to := min(from+n, len(t.s.stock[t.at]))
	t.s.next[t.at] = to
	return slices.Clone(t.s.stock[t.at][from:to]), from == to, nil
}

func (t stockTx) Stock(_ int64, _ ID, n int) (left []Ref, _ error) {
	for _, r := range t.s.stock[t.at] {
		if !t.s.used[r.ID] && len(left) < n {
			left = append(left, r)
		}
	}
	return left, nil
}

// claimElsewhere takes a coupon for a user of shard 0 and returns where it was. One
// that was being taken when its slice was scanned comes a second time.
func (s *stockStore) claimElsewhere(t *testing.T, p *pool, c Campaign) (shard.Shard, error) {
	for {
		ref, err := p.takeElsewhere(t.Context(), c, 0)
		if err != nil || s.use(ref) {
			return ref.ID.Shard(), err
		}
	}
}

func TestSliceGivesEachCouponOnceAndIsEmptyThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, c := newStock(t, 40)
		for i := range 40 {
			ref, err := p.take(t.Context(), c, 3)
			if err != nil || !s.use(ref) {
				t.Errorf("%d: %d, %v: not one to be had", i, ref.ID, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if ref, err := p.take(t.Context(), c, 3); !errors.Is(err, errSliceEmpty) {
			t.Errorf("%d, %v after the last", ref.ID, err)
		}
	})
}

// TestShardThatIsAwayHoldsNobodyUp: of those who take elsewhere.
func TestShardThatIsAwayHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, c := newStock(t, 200)
		gone := []shard.Shard{1, 2, 3, 4}
		for _, at := range shard.All() { // every slice has coupons at hand
			if _, err := p.take(t.Context(), c, at); err != nil {
				t.Fatal(err)
			}
		}
		s.let(true, gone...)
		for _, at := range gone { // whoever met them first
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			p.store.Read(ctx, at, nil)
			cancel()
		}
		began := time.Now()
		for range 1_000 {
			ref, err := p.takeElsewhere(t.Context(), c, 0)
			if err != nil || s.gone[ref.ID.Shard()] {
				t.Fatalf("coupon of shard %d, %v", ref.ID.Shard(), err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("1,000 coupons took %v", took)
		}
	})
}

func TestShardThatIsAwayIsNotEmptyAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, c := newStock(t, 1)
		s.let(true, 1, 2)
		for range shard.Count - 3 {
			if at, err := s.claimElsewhere(t, p, c); err != nil || at <= 2 {
				t.Fatal(at, err)
			}
		}
		began := time.Now()
		_, err := p.takeElsewhere(t.Context(), c, 0)
		if took := time.Since(began); errors.Is(err, ErrPoolExhausted) || err == nil || took > time.Second {
			t.Errorf("%v after %v", err, took)
		}
		s.let(false, 1, 2)
		time.Sleep(fillTimeout + poolRetry) // the fill that hangs
		for range 2 {
			if at, err := s.claimElsewhere(t, p, c); err != nil || at > 2 {
				t.Errorf("shard %d, %v", at, err)
			}
		}
		if _, err := p.takeElsewhere(t.Context(), c, 0); !errors.Is(err, ErrPoolExhausted) {
			t.Errorf("%v after the last", err)
		}
	})
}
