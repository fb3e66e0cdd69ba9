package shard

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A Budget bounds a fan-out.
type Budget struct {
	Shards   int           // how many it may ask, at most
	Parallel int           // how many at the same time; 0: one
	Time     time.Duration // for all of it
}

// FanOut runs fn once on each of the shards, which are all if none are named. The
// reason, a constant like "statistics", is counted: it says who asks every shard
// and why. It is refused with [ErrBudget] before anything is asked if there are
// more shards than the budget allows or the budget has no time. fn is called by
// several goroutines where Parallel is over 1. The first error cancels the rest.
func (c *Cluster) FanOut(ctx context.Context, reason string, b Budget, shards []Shard, fn func(*Reader) error) error {
	if len(shards) == 0 {
		shards = All()
	}
	if reason == "" || b.Time <= 0 || len(shards) > b.Shards {
		return fmt.Errorf("%w: %q, %d shards of %d in %v", ErrBudget, reason, len(shards), b.Shards, b.Time)
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, b.Time)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	next := make(chan Shard)
	var asking sync.WaitGroup
	for range max(1, b.Parallel) {
		asking.Go(func() {
			for s := range next {
				if err := c.Read(ctx, s, fn); err != nil {
					fail(fmt.Errorf("%s: shard %d: %w", reason, s, err))
				}
			}
		})
	}
	asked := hand(ctx, shards, next)
	asking.Wait()
	if c.o.FannedOut != nil {
		c.o.FannedOut(reason, asked, time.Since(start))
	}
	return context.Cause(ctx)
}

// hand hands out the shards until ctx ends, and returns how many it did.
func hand(ctx context.Context, shards []Shard, next chan<- Shard) int {
	defer close(next)
	for i, s := range shards {
		select {
		case next <- s:
		case <-ctx.Done():
			return i
		}
	}
	return len(shards)
}
