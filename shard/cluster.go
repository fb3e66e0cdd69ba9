package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// Options of a [Cluster].
type Options struct {
	// Timeout bounds one transaction or read, waiting for a connection
	// included. Default 1 s.
	Timeout time.Duration
	// Reload reads the newest map when a write met [ErrMoved]. Default: it
	// stays as it is.
	Reload func(ctx context.Context) (Map, error)
	// FannedOut is told of each fan-out: its reason, how many shards it asked
	// and how long that took. Default: nobody is.
	FannedOut func(reason string, shards int, took time.Duration)
}

// A Cluster is the shards, wherever they are. It is safe for concurrent use.
type Cluster struct {
	o         Options
	databases map[string]Database
	current   atomic.Pointer[Map]
}

// moves is how often a write follows a shard that moved.
const moves = 3

// New makes a cluster of a map and the databases it names.
func New(m Map, databases map[string]Database, o Options) (*Cluster, error) {
	if o.Timeout <= 0 {
		o.Timeout = time.Second
	}
	c := &Cluster{o: o, databases: maps.Clone(databases)}
	if err := c.SetMap(m); err != nil {
		return nil, err
	}
	return c, nil
}

// Map returns the map in use.
func (c *Cluster) Map() Map { return *c.current.Load() }

// SetMap takes a map into use unless a newer one is. It fails, and changes
// nothing, if the map is invalid or names a database the cluster does not have.
func (c *Cluster) SetMap(m Map) error {
	if err := m.Validate(); err != nil {
		return err
	}
	for _, name := range m.Databases() {
		if c.databases[name] == nil {
			return fmt.Errorf("shard: the map names database %q, which is not configured (there are %v)",
				name, slices.Sorted(maps.Keys(c.databases)))
		}
	}
	for {
		old := c.current.Load()
		if old != nil && old.Version >= m.Version {
			return nil
		}
		if c.current.CompareAndSwap(old, &m) {
			return nil
		}
	}
}

// Same reports whether two keys are on one shard, so that one transaction can
// write both. Two shards never share one, even in one database: either may move.
func Same(a, b Key) bool { return a.Bucket().Shard() == b.Bucket().Shard() }

// Write runs fn in a transaction on the shard of key and commits it if fn
// returns nil. An error of fn rolls back and is returned. fn runs again, on
// another database, where the shard moved in between, at most twice; it must do
// nothing but work on its [Tx].
func (c *Cluster) Write(ctx context.Context, key Key, fn func(*Tx) error) error {
	shard := key.Bucket().Shard()
	for try := 1; ; try++ {
		err := c.write(ctx, shard, fn)
		if !errors.Is(err, ErrMoved) || try == moves {
			return err
		}
		if err := c.reload(ctx); err != nil {
			return err
		}
	}
}

func (c *Cluster) write(ctx context.Context, shard Shard, fn func(*Tx) error) error {
	place := c.Map().Shards[shard]
	db := c.databases[place.Database]
	ctx, cancel := context.WithTimeout(routed(ctx, shard), c.o.Timeout)
	defer cancel()
	return db.Write(ctx, func(conn Conn) error {
		tx := &Tx{Reader: Reader{ctx, conn, shard, db.Dialect()}}
		if err := tx.enter(db.Fence(), place.Epoch); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Read runs fn on the shard of key, outside a transaction.
func (c *Cluster) Read(ctx context.Context, key Key, fn func(*Reader) error) error {
	shard := key.Bucket().Shard()
	db := c.databases[c.Map().Shards[shard].Database]
	ctx, cancel := context.WithTimeout(routed(ctx, shard), c.o.Timeout)
	defer cancel()
	return db.Read(ctx, func(conn Conn) error {
		return fn(&Reader{ctx, conn, shard, db.Dialect()})
	})
}

// reload brings the map up to date.
func (c *Cluster) reload(ctx context.Context) error {
	if c.o.Reload == nil {
		return ErrMoved
	}
	m, err := c.o.Reload(ctx)
	if err != nil {
		return fmt.Errorf("%w, and the map could not be read: %w", ErrMoved, err)
	}
	return c.SetMap(m)
}
