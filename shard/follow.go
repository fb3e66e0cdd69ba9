package shard

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A call that met a shard where it no longer is asks for the map again. Where
// there is no newer one yet, because the shard is just moving, it waits a
// little, each time twice as long.
const (
	firstPause = 5 * time.Millisecond
	maxPause   = 100 * time.Millisecond
)

// follow calls try with the place of the key's shard until that is where the
// shard is, for at most MoveWait, and returns what try did.
func (c *Cluster) follow(ctx context.Context, key Key, try func(context.Context, Shard, Place) error) error {
	shard := key.Bucket().Shard()
	ctx = routed(ctx, shard)
	begin := time.Now()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		m := c.current.Load()
		err := c.once(ctx, shard, m, try)
		if !errors.Is(err, ErrMoved) || c.o.Reload == nil {
			return err
		}
		if failed := c.reload(ctx); failed != nil {
			return fmt.Errorf("%w; reading the map again: %w", err, failed)
		}
		left := c.o.MoveWait - time.Since(begin)
		if left <= 0 || c.current.Load() == m && !sleep(ctx, min(pause, left)) {
			return err
		}
	}
}

func (c *Cluster) once(ctx context.Context, s Shard, m *Map, try func(context.Context, Shard, Place) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	return try(ctx, s, m.Shards[s])
}

// reload brings the map up to date, or returns when ctx ends.
func (c *Cluster) reload(ctx context.Context) error {
	reloaded := c.reloads.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.Timeout)
		defer cancel()
		m, err := c.o.Reload(ctx)
		if err != nil {
			return nil, err
		}
		return nil, c.SetMap(m)
	})
	select {
	case r := <-reloaded:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sleep returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
