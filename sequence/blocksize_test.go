package sequence

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestBlockIsAsLargeAsTheDemandAllows(t *testing.T) {
	endless := Spec{Name: "s"}
	for name, c := range map[string]struct {
		spec   Spec
		demand demand
		want   int64
	}{
		"an idle sequence: block_size":             {endless, demand{}, 1000},
		"60 s of a steady rate":                    {endless, demand{rate: 5000, lately: 300_000}, 300_000},
		"no more than twice what was granted":      {endless, demand{rate: 5000, lately: 20_000}, 40_000},
		"the largest block":                        {endless, demand{rate: 1e6, lately: 60_000_000}, 1_000_000},
		"what leases wait for, if that is more":    {endless, demand{rate: 1, lately: 60, waiting: 900_000}, 900_000},
		"what leases wait for, beyond max_block":   {Spec{Name: "s", MaxBlock: new(int64(10))}, demand{waiting: 1000}, 1000},
		"stock counts against server_cache_max":    {Spec{Name: "s", ServerCacheMax: new(int64(1500))}, demand{held: 900}, 600},
		"a full stock: one, for who asks":          {Spec{Name: "s", ServerCacheMax: new(int64(1000))}, demand{held: 5000}, 1},
		"a full stock, and leases wait":            {Spec{Name: "s", ServerCacheMax: new(int64(1000))}, demand{held: 5000, waiting: 77}, 77},
		"1 % of a small range":                     {Spec{Name: "s", Max: new(int64(30_000))}, demand{}, 300},
		"one of a tiny range":                      {Spec{Name: "s", Max: new(int64(50))}, demand{}, 1},
		"what leases wait for, beyond 1 %":         {Spec{Name: "s", Max: new(int64(30_000))}, demand{waiting: 5000}, 5000},
		"1 % of 2^64 values is no limit":           {Spec{Name: "s", Min: new(int64(math.MinInt64))}, demand{}, 1000},
		"a rate that is no number counts as none":  {endless, demand{rate: math.NaN(), lately: 60}, 1000},
		"a rate without end is bounded by lately":  {endless, demand{rate: math.Inf(1), lately: 5000}, 10_000},
		"lately without a rate keeps to the least": {endless, demand{lately: 5000}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := c.spec.Define()
			if err != nil {
				t.Fatal(err)
			}
			if got := c.demand.blockSize(newRecord(d, "0")); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// TestBlockSizeKeepsItsBounds: for any sequence at any position a block is at
// least one value and what leases wait for, and beyond that neither more than
// max_block, nor 1 % of the range, nor what server_cache_max leaves.
func TestBlockSizeKeepsItsBounds(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		r := anyRecord().Draw(t, "record")
		d := &r.Definition
		d.BlockSize = rapid.Int64Range(1, MaxBlockSize).Draw(t, "block size")
		d.MaxBlock = rapid.Int64Range(d.BlockSize, MaxBlockSize).Draw(t, "max block")
		d.ServerCacheMax = rapid.Int64Range(d.BlockSize, math.MaxUint32).Draw(t, "server cache max")
		w := demand{
			rate: rapid.Float64().Draw(t, "rate"), lately: rapid.Int64Range(0, math.MaxInt64).Draw(t, "lately"),
			held: rapid.Int64Range(0, 1<<41).Draw(t, "held"), waiting: rapid.Int64Range(0, MaxLeaseCount).Draw(t, "waiting"),
		}
		got, least := w.blockSize(r), max(1, w.waiting)
		if got < least {
			t.Fatalf("%d values for %+v", got, w)
		}
		if got == least {
			return
		}
		if got > d.MaxBlock || uint64(got) > r.Remaining()/100 || got > d.ServerCacheMax-w.held {
			t.Errorf("%d values of %+v for %+v", got, r, w)
		}
	})
}

func TestCacheHoldsTwiceItsBufferWithinItsBounds(t *testing.T) {
	d, err := Spec{Name: "s", BufferSeconds: new(int64(10))}.Define()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rate float64
		want int64
	}{{0, 50}, {10, 200}, {1e9, 500}, {-1, 50}, {math.NaN(), 50}, {math.Inf(1), 50}} {
		if got := cachePolicy(d).Capacity(c.rate); got != c.want {
			t.Errorf("at %v/s: %d, want %d", c.rate, got, c.want)
		}
	}
}
