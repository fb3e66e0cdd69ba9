package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/shard"
)

// Before it serves, a server proves by its own pools that statements on shards'
// tables run only where they belong. The tables need not be there: what is in
// order is refused before it is sent.

// A closableDatabase is one that its opener closes.
type closableDatabase interface {
	shard.Database
	Close() error
}

// routedOnly returns open with a proof that what it opens refuses statements that
// did not come through a cluster.
func routedOnly[D closableDatabase](open func(context.Context, string) (D, error)) func(context.Context, string) (D, error) {
	return func(ctx context.Context, at string) (D, error) {
		db, err := open(ctx, at)
		if err != nil {
			return db, err
		}
		if err := refusesUnrouted(ctx, db); err != nil {
			var none D
			return none, errors.Join(err, db.Close())
		}
		return db, nil
	}
}

// refusesUnrouted fails unless reads and writes of a shard's table are refused.
func refusesUnrouted(ctx context.Context, db shard.Database) error {
	ask := func(c shard.Conn) error {
		rows, err := c.QueryContext(ctx, "SELECT id FROM coupon_07")
		if err == nil {
			err = rows.Close()
		}
		return isUnrouted(err, "without a shard key")
	}
	if err := db.Read(ctx, ask); err != nil {
		return err
	}
	return db.Write(ctx, ask)
}

// refusesOthers fails unless each shard that is there refuses a statement on
// another's table.
func refusesOthers(ctx context.Context, cluster *shard.Cluster) error {
	for _, s := range shard.All() {
		other := (s + 1) % shard.Count
		text := shard.SQL(fmt.Sprintf("SELECT id FROM coupon_%02d -- #", other))
		err := cluster.Read(ctx, s, func(r *shard.Reader) error {
			rows, err := r.Query(text)
			if err == nil {
				err = rows.Close()
			}
			return isUnrouted(err, "of another shard")
		})
		if errors.Is(err, shard.ErrUnavailable) { // what opens it later is routedOnly, too
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isUnrouted returns nil for [shard.ErrUnrouted], and what is wrong with anything
// else.
func isUnrouted(err error, what string) error {
	switch {
	case errors.Is(err, shard.ErrUnrouted):
		return nil
	case errors.Is(err, shard.ErrUnavailable):
		return err
	}
	return failed("use a build whose drivers are guarded", "a statement %s was not refused as such (%v): it could reach rows of a shard that is elsewhere", what, err)
}
