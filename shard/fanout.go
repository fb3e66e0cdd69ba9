package shard

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
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
// more shards than the budget allows or the budget has no time, and ends with
// ErrBudget when that time is over. fn is called by several goroutines where
// Parallel is over 1. The first error cancels the rest and is returned.
func (c *Cluster) FanOut(ctx context.Context, reason string, b Budget, shards []Shard, fn func(*Reader) error) error {
	if len(shards) == 0 {
		shards = All()
	}
	if reason == "" || b.Time <= 0 || len(shards) > b.Shards {
		return fmt.Errorf("%w: %q, %d shards of %d in %v", ErrBudget, reason, len(shards), b.Shards, b.Time)
	}
	start := time.Now()
	late := fmt.Errorf("%w: %q took longer than %v", ErrBudget, reason, b.Time)
	ctx, cancel := context.WithTimeoutCause(ctx, b.Time, late)
	defer cancel()
	asked, err := c.each(ctx, b.Parallel, shards, fn)
	if c.o.FannedOut != nil {
		c.o.FannedOut(reason, asked, time.Since(start))
	}
	switch ended := context.Cause(ctx); {
	case err == nil && asked == len(shards):
		return nil
	case ended != nil:
		return ended
	default:
		return fmt.Errorf("%s: %w", reason, err)
	}
}

// each runs fn on the shards until one fails or ctx ends. It returns how many it
// asked.
func (c *Cluster) each(ctx context.Context, parallel int, shards []Shard, fn func(*Reader) error) (asked int, err error) {
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(max(1, parallel))
	for _, s := range shards {
		if ctx.Err() != nil {
			break
		}
		asked++
		asking.Go(func() error {
			if err := c.Read(ctx, s, fn); err != nil {
				return fmt.Errorf("shard %d: %w", s, err)
			}
			return nil
		})
	}
	return asked, asking.Wait()
}
