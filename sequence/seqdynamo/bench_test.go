package seqdynamo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence"
)

// BenchmarkAllocate compares the ways of taking blocks from one counter: 32
// allocators that know nothing of each other, 5 ms from the table, and with
// one reply in a hundred lost. One operation is one block of 1,000 values.
//
//	advance       UpdateItem next = next + 1000, wherever next stands
//	swap          compare-and-set; after a conflict from the record it returns
//	swap-backoff  the same, waiting up to 5, 10, 20 ... 160 ms after a conflict
func BenchmarkAllocate(b *testing.B) {
	for _, way := range []struct {
		name string
		take func(context.Context, sequence.Store, sequence.Record) (sequence.Record, error)
	}{
		{"advance", takeByAdvance},
		{"swap", func(ctx context.Context, s sequence.Store, r sequence.Record) (sequence.Record, error) {
			return takeBySwap(ctx, s, r, 0)
		}},
		{"swap-backoff", func(ctx context.Context, s sequence.Store, r sequence.Record) (sequence.Record, error) {
			return takeBySwap(ctx, s, r, 5*time.Millisecond)
		}},
	} {
		for _, lost := range []int{0, 1} {
			b.Run(fmt.Sprintf("%s/lost=%d%%", way.name, lost), func(b *testing.B) { benchmarkAllocate(b, lost, way.take) })
		}
	}
}

const (
	allocators = 32
	blockSize  = 1000
	latency    = 5 * time.Millisecond
)

func benchmarkAllocate(b *testing.B, lost int, take func(context.Context, sequence.Store, sequence.Record) (sequence.Record, error)) {
	proxy, table := realtest.NewDynamoProxy(b, realtest.DynaliteURL(b)), newTable()
	store := open(b, proxy.URL, table)
	r := create(b, store, "orders")
	proxy.Inject(func(q realtest.DynamoRequest) realtest.Fault {
		if q.Writes() && rand.IntN(100) < lost {
			return realtest.Fault{Before: latency, Action: realtest.LoseReply}
		}
		return realtest.Fault{Before: latency / 2, After: latency / 2}
	})
	proxy.ResetCounts()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var wg sync.WaitGroup
	for range allocators {
		wg.Go(func() {
			seen := r
			for left.Add(-1) >= 0 {
				var err error
				if seen, err = take(b.Context(), store, seen); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	proxy.Inject(nil)
	requests := proxy.Count("", table)
	final, err := store.Load(b.Context(), "orders")
	if err != nil {
		b.Fatal(err)
	}
	burned := final.Next - r.Next - int64(b.N)*blockSize
	b.ReportMetric(float64(requests)/float64(b.N), "requests/block")
	b.ReportMetric(float64(burned)/float64(b.N), "burned/block")
}

func takeByAdvance(ctx context.Context, s sequence.Store, seen sequence.Record) (sequence.Record, error) {
	for {
		a := advance(seen)
		a.Delta = blockSize
		after, err := s.Advance(ctx, a)
		if errors.Is(err, sequence.ErrUnknownOutcome) {
			after, err = resolve(ctx, s, a.Name, a.Nonce)
		}
		if !errors.Is(err, sequence.ErrConflict) {
			return after, err
		}
		seen = after
	}
}

func takeBySwap(ctx context.Context, s sequence.Store, seen sequence.Record, wait time.Duration) (sequence.Record, error) {
	for n := 0; ; n++ {
		_, next, err := seen.Take(blockSize, sequence.NewNonce())
		if err != nil {
			return seen, err
		}
		after, err := s.Swap(ctx, seen.Nonce, next)
		if errors.Is(err, sequence.ErrUnknownOutcome) {
			after, err = resolve(ctx, s, next.Definition.Name, next.Nonce)
		}
		if !errors.Is(err, sequence.ErrConflict) {
			return after, err
		}
		seen = after
		if wait > 0 {
			<-time.After(rand.N(wait << min(n, 5)))
		}
	}
}

// resolve reads what became of a write whose reply was lost: done if its nonce
// is still there, else nobody can know.
func resolve(ctx context.Context, s sequence.Store, name, nonce string) (sequence.Record, error) {
	now, err := s.Load(ctx, name)
	if err == nil && now.Nonce != nonce {
		err = sequence.ErrConflict
	}
	return now, err
}
