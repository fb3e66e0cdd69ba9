package sequence

import (
	"math"
	"time"

	"github.com/tallystick/tallystick/internal/refill"
)

// serverBuffer is how much consumption a server keeps ahead of its clients. It
// is also how long it serves a steady load while the store is away.
const serverBuffer = 60 * time.Second

// blockPolicy returns how a server caches the sequence of r, of which it has
// granted lately values in the last minute. A full cache is one block of 60 s
// of consumption, at least block_size and at most max_block. It never is more
// than twice what was granted in the last minute, so that a burst, or a server that lives
// for seconds, burns about as much as it was good for; nor over 1 % of what is
// left of the range, so that a few servers do not empty a small one.
func blockPolicy(r Record, lately int64) refill.Policy {
	d := r.Definition
	most := min(d.MaxBlock, max(d.BlockSize, 2*min(lately, d.MaxBlock)))
	most = int64(min(max(1, r.Remaining()/100), uint64(most)))
	return refill.Policy{
		Buffer: serverBuffer, Periods: 1,
		Min: min(d.BlockSize, most), Max: most, MinThreshold: d.BlockSize,
	}
}

// A demand is what a block is sized for.
type demand struct {
	rate    float64 // values a second granted
	lately  int64   // values granted in the last minute
	held    int64   // values in stock
	waiting int64   // values of leases that wait
}

// blockSize returns how many values of r to take. Leases that wait come first;
// for stock ahead of them it keeps to server_cache_max.
func (d demand) blockSize(r Record) int64 {
	n := blockPolicy(r, d.lately).Level(d.rate).Capacity
	n = min(n, r.Definition.ServerCacheMax-d.held)
	return max(1, n, d.waiting)
}

// cachePolicy returns what a lease tells the client about caching.
func cachePolicy(d Definition) CachePolicy {
	return CachePolicy{
		Min: d.ClientCacheMin, Max: d.ClientCacheMax, MinThreshold: d.MinThreshold,
		Buffer: time.Duration(d.BufferSeconds) * time.Second,
	}
}

// Capacity returns how many values a full cache holds while rate values a
// second are consumed, which may be any number.
func (c CachePolicy) Capacity(rate float64) int64 { return c.level(clampRate(rate)).Capacity }

// level decides how a client caches: twice what it consumes in its buffer.
func (c CachePolicy) level(rate float64) refill.Level {
	return refill.Policy{Buffer: c.Buffer, Periods: 2, Min: c.Min, Max: c.Max, MinThreshold: c.MinThreshold}.Level(rate)
}

// clampRate returns a rate somebody else sent, or 0 if it makes no sense.
func clampRate(rate float64) float64 {
	if !(rate > 0) || math.IsInf(rate, 1) {
		return 0
	}
	return rate
}
