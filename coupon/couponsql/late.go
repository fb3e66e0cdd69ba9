package couponsql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// lateRetry is the pause before a database that could not be opened is tried again.
const lateRetry = time.Second

// A lateDatabase could not be reached when the platform was opened, and is
// unavailable until it was opened and its tables are up to date.
type lateDatabase struct {
	source Source
	there  atomic.Pointer[Database] // nil: not yet
}

func isLate(db shard.Database) bool {
	_, late := db.(*lateDatabase)
	return late
}

func (l *lateDatabase) Write(ctx context.Context, fn func(shard.Conn) error) error {
	db, err := l.get()
	if err != nil {
		return err
	}
	return db.Write(ctx, fn)
}

func (l *lateDatabase) Read(ctx context.Context, fn func(shard.Conn) error) error {
	db, err := l.get()
	if err != nil {
		return err
	}
	return db.Read(ctx, fn)
}

func (l *lateDatabase) get() (Database, error) {
	if db := l.there.Load(); db != nil {
		return *db, nil
	}
	return nil, fmt.Errorf("%w: database %s could not be reached since this process began: it is tried again every second", shard.ErrUnavailable, l.source.Name)
}

// Fence and Dialect are asked only within what Read and Write run.

func (l *lateDatabase) Fence() string          { return (*l.there.Load()).Fence() }
func (l *lateDatabase) Dialect() shard.Dialect { return (*l.there.Load()).Dialect() }

// late opens the databases that could not be reached, until it is closed. The zero
// value has none.
type late struct {
	databases []*lateDatabase
	opening   sync.WaitGroup
	end       context.CancelFunc // nil: nothing was started
}

// start begins to open those of databases that are late. They are shards of the
// cluster, whose map says which when they are there.
func (l *late) start(c *shard.Cluster, o Options, databases map[string]shard.Database) {
	ctx, end := context.WithCancel(context.Background())
	l.end = end
	for _, db := range databases {
		if one, is := db.(*lateDatabase); is {
			l.databases = append(l.databases, one)
			l.opening.Go(func() { one.await(ctx, c, o, databases) })
		}
	}
}

// await tries to open the database until that succeeds or ctx ends.
func (l *lateDatabase) await(ctx context.Context, c *shard.Cluster, o Options, databases map[string]shard.Database) {
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lateRetry):
		}
		err := l.open(ctx, c, o, databases)
		if err == nil {
			o.Late(l.source.Name, nil)
			return
		}
		if ctx.Err() == nil && err.Error() != last { // once for each reason
			last = err.Error()
			o.Late(l.source.Name, err)
		}
	}
}

// open opens the database and brings it up to date before anybody uses it.
func (l *lateDatabase) open(ctx context.Context, c *shard.Cluster, o Options, databases map[string]shard.Database) error {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	db, err := o.Open(opening, l.source.At)
	if err != nil {
		return fmt.Errorf("database %s: %w", l.source.Name, err)
	}
	with := maps.Clone(databases)
	with[l.source.Name] = db
	if err := prepare(ctx, o, c.Map(), with, []string{l.source.Name}); err != nil {
		return errors.Join(err, db.Close())
	}
	l.there.Store(&db)
	return nil
}

// close ends the opening and closes what was opened. Closed again it does nothing.
func (l *late) close() (err error) {
	if l.end == nil {
		return nil
	}
	l.end()
	l.opening.Wait()
	for _, one := range l.databases {
		if db := one.there.Load(); db != nil {
			err = errors.Join(err, (*db).Close())
		}
	}
	l.databases = nil
	return err
}
