package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// Options of a [Cluster].
type Options struct {
	// Timeout bounds one transaction or read, waiting for a connection
	// included. Default 2 s: more than a database waits for a lock, so that
	// [ErrBusy] comes as such.
	Timeout time.Duration
	// Reload reads the newest map when a call met [ErrMoved]. Calls that meet
	// it at the same time share one. Default: the map stays as it is and
	// ErrMoved is returned at once.
	Reload func(ctx context.Context) (Map, error)
	// MoveWait is how long a call waits for a shard that is moving, beside
	// Timeout. Default 2 s.
	MoveWait time.Duration
	// FannedOut is told of each fan-out: its reason, how many shards it asked
	// and how long that took. Default: nobody is.
	FannedOut func(reason string, shards int, took time.Duration)
}

// A Cluster is the shards, wherever they are. It is safe for concurrent use.
type Cluster struct {
	o         Options
	databases map[string]Database
	current   atomic.Pointer[Map]
	reloads   singleflight.Group
}

// New makes a cluster of a map and the databases it names.
func New(m Map, databases map[string]Database, o Options) (*Cluster, error) {
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Second
	}
	if o.MoveWait <= 0 {
		o.MoveWait = 2 * time.Second
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
// Calls under way go on with the map they began with; the fence decides.
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
// returns nil. An error of fn rolls back and is returned, unless the fence could
// not be passed: then that is. fn runs again where
// the shard moved in between or the database gave the transaction up, so it
// must do nothing but work on its [Tx] and set its results afresh.
func (c *Cluster) Write(ctx context.Context, key Key, fn func(*Tx) error) error {
	return c.follow(ctx, key, func(ctx context.Context, s Shard, p Place) error {
		db := c.databases[p.Database]
		return db.Write(ctx, func(conn Conn) error {
			tx := &Tx{Reader: Reader{ctx, conn, s, db.Dialect(), &fence{text: db.Fence(), epoch: p.Epoch}}}
			return tx.run(fn)
		})
	})
}

// Read runs fn on the shard of key, outside a transaction. fn runs again where
// the shard's tables moved in between, so it must set its results afresh.
func (c *Cluster) Read(ctx context.Context, key Key, fn func(*Reader) error) error {
	return c.follow(ctx, key, func(ctx context.Context, s Shard, p Place) error {
		db := c.databases[p.Database]
		return db.Read(ctx, func(conn Conn) error {
			return fn(&Reader{ctx, conn, s, db.Dialect(), nil})
		})
	})
}
