package seqtest

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/sequence"
)

const (
	allocators  = 32     // goroutines that share one counter
	maxAttempts = 10_000 // of one write; each conflict is another's success, so they are far fewer
)

var errLivelock = errors.New("conflicts have no end")

func testAllocators(t *testing.T, f fixture) {
	for _, c := range []struct {
		name   string
		change func(*sequence.Definition)
		laps   uint64
		values int64 // of one lap
	}{
		{"ascending", func(d *sequence.Definition) { d.Max = 12_000 }, 1, 12_000},
		{"descending by 3 with a rest", func(d *sequence.Definition) {
			d.Increment, d.Min, d.Max, d.Start = -3, -15_000, 15_001, 15_001
		}, 1, 10_001},
		{"cycling", func(d *sequence.Definition) { d.Max, d.Cycle = 900, true }, 5, 900},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := f.record(t, c.name)
			c.change(&r.Definition)
			r.Next = r.Definition.Start
			f.create(t, r)
			blocks := f.drain(t, r, c.laps)
			for epoch := uint64(1); epoch <= c.laps; epoch++ {
				tiled(t, r.Definition, blocks[epoch], c.values)
			}
		})
	}
}

// drain lets all allocators take blocks until the sequence is exhausted or
// laps are over, and returns the blocks by epoch.
func (f fixture) drain(t *testing.T, r sequence.Record, laps uint64) map[uint64][]sequence.Block {
	var mu sync.Mutex
	var wg sync.WaitGroup
	blocks := map[uint64][]sequence.Block{}
	for range allocators {
		wg.Go(func() {
			seen := r
			for range maxAttempts {
				block, after, err := Allocate(t.Context(), f.store, seen, rand.Int64N(97)+1)
				if errors.Is(err, sequence.ErrExhausted) || err == nil && block.Epoch > laps {
					return
				}
				if err != nil {
					t.Errorf("allocate: %v", err)
					return
				}
				seen = after
				mu.Lock()
				blocks[block.Epoch] = append(blocks[block.Epoch], block)
				mu.Unlock()
			}
			t.Error("the sequence has no end")
		})
	}
	wg.Wait()
	return blocks
}

// Allocate takes one block of up to n values the plainest way there is: by an
// Advance on whatever record was seen last, or by Take and Swap at the end of
// a lap. It returns the record after the block. It serves as a reference; a
// server allocates through [sequence.Service].
func Allocate(ctx context.Context, store sequence.Store, seen sequence.Record, n int64) (sequence.Block, sequence.Record, error) {
	for range maxAttempts {
		var block sequence.Block
		var after sequence.Record
		var err error
		if !seen.Exhausted && seen.Remaining() > uint64(n) {
			a := forward(seen, n)
			after, err = store.Advance(ctx, a)
			block = sequence.Block{Run: sequence.Run{First: after.Next - a.Delta, Step: after.Definition.Increment, Count: n}, Epoch: after.Epoch, Version: after.Version}
		} else {
			block, after, err = swap(ctx, store, seen, n)
		}
		if !errors.Is(err, sequence.ErrConflict) {
			return block, after, err
		}
		seen = after
	}
	return sequence.Block{}, seen, errLivelock
}

// swap takes a block by Take and Swap. The record seen may be stale, which
// the swap finds out, unless it says exhausted.
func swap(ctx context.Context, store sequence.Store, seen sequence.Record, n int64) (sequence.Block, sequence.Record, error) {
	block, next, err := seen.Take(n, sequence.NewNonce())
	if err != nil {
		return sequence.Block{}, seen, err
	}
	after, err := store.Swap(ctx, seen.Nonce, next)
	return block, after, err
}

// tiled fails the test unless blocks are one lap of d without overlap or hole.
func tiled(t *testing.T, d sequence.Definition, blocks []sequence.Block, values int64) {
	t.Helper()
	slices.SortFunc(blocks, func(a, b sequence.Block) int {
		if d.Descending() {
			a, b = b, a
		}
		return cmp.Compare(a.First, b.First)
	})
	next, count := d.Start, int64(0)
	for _, b := range blocks {
		if b.First != next || b.Step != d.Increment || b.Count < 1 {
			t.Fatalf("block %v, want one from %d by %d", b.Run, next, d.Increment)
		}
		next = b.Last() + d.Increment
		count += b.Count
	}
	if count != values {
		t.Fatalf("%d values in %d blocks, want %d", count, len(blocks), values)
	}
}

// testSwaps lets all allocators add one by compare-and-set: none is lost.
func testSwaps(t *testing.T, f fixture) {
	const each = 4
	r := f.record(t, "counter")
	f.create(t, r)
	var wg sync.WaitGroup
	for range allocators {
		wg.Go(func() {
			seen := r
			for range each {
				var err error
				if seen, err = f.add(t.Context(), seen); err != nil {
					t.Errorf("swap: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	got, err := f.store.Load(t.Context(), r.Definition.Name)
	if err != nil || got.Next != r.Next+allocators*each {
		t.Fatalf("next = %d, %v, want %d", got.Next, err, r.Next+allocators*each)
	}
}

// add takes one value by compare-and-set.
func (f fixture) add(ctx context.Context, seen sequence.Record) (sequence.Record, error) {
	for range maxAttempts {
		_, after, err := swap(ctx, f.store, seen, 1)
		if !errors.Is(err, sequence.ErrConflict) {
			return after, err
		}
		seen = after
	}
	return seen, errLivelock
}

// testCreates lets all create the same name: one does.
func testCreates(t *testing.T, f fixture) {
	records := make([]sequence.Record, allocators)
	errs := make([]error, allocators)
	var wg sync.WaitGroup
	for i := range records {
		records[i] = f.record(t, "one")
		wg.Go(func() { errs[i] = f.store.Create(t.Context(), records[i:i+1])[0] })
	}
	wg.Wait()
	won := slices.Index(errs, nil)
	if won < 0 {
		t.Fatalf("nobody created it: %v", errs)
	}
	f.holds(t, records[won])
	for i, err := range errs {
		if i != won {
			is(t, err, sequence.ErrExists)
		}
	}
}
