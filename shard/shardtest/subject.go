package shardtest

import (
	"context"
	"testing"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// A Subject is a new and empty database under test.
type Subject struct {
	// Open returns a further handle of the database, as another process would
	// have it. It ends with the test. All shards have a fence of epoch 1.
	Open func(t testing.TB) shard.Database
	// Through returns a handle that reaches the database through Net.
	Through func(t testing.TB) shard.Database
	// Net disturbs the handles of Through. Nil, like Through: no network lies
	// between the process and its database.
	Net Net
}

// A Net is a proxy before the database.
type Net interface {
	Delay(time.Duration) // of what the database sends
	Stall()              // holds everything back
	Cut()                // closes all connections and refuses new ones
	Restore()
}

// A client is a handle with a cluster that has all shards there.
type client struct {
	shard.Database
	*shard.Cluster
}

func connect(t testing.TB, db shard.Database) client {
	t.Helper()
	m, err := shard.Spread("db")
	if err != nil {
		t.Fatal(err)
	}
	c, err := shard.New(m, map[string]shard.Database{"db": db}, shard.Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return client{db, c}
}

// Write and Read are the cluster's.
func (c client) Write(ctx context.Context, key shard.Key, fn func(*shard.Tx) error) error {
	return c.Cluster.Write(ctx, key, fn)
}

func (c client) Read(ctx context.Context, key shard.Key, fn func(*shard.Reader) error) error {
	return c.Cluster.Read(ctx, key, fn)
}

// The table of the tests, on shards 7 and 8.
var (
	create = shard.SQL("CREATE TABLE thing_# (id BIGINT NOT NULL PRIMARY KEY, n BIGINT NOT NULL)")
	insert = shard.SQL("INSERT INTO thing_# (id, n) VALUES (?, ?)")
	add    = shard.SQL("UPDATE thing_# SET n = n + ? WHERE id = ?")
	set    = shard.SQL("UPDATE thing_# SET n = ? WHERE id = ?")
	remove = shard.SQL("DELETE FROM thing_# WHERE id = ?")
	get    = shard.SQL("SELECT n FROM thing_# WHERE id = ?")
)

const (
	seven = shard.Shard(7)
	eight = shard.Shard(8)
)

// prepare opens a handle and makes the tables, with row 1 that holds 0.
func prepare(t *testing.T, s Subject) client {
	t.Helper()
	c := connect(t, s.Open(t))
	for _, key := range []shard.Shard{seven, eight} {
		err := c.Write(t.Context(), key, func(tx *shard.Tx) error {
			_, err := tx.Exec(create)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c.insert(t, 1, 0)
	return c
}

func (c client) insert(t *testing.T, id, n int64) {
	t.Helper()
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		_, err := tx.Exec(insert, id, n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (c client) delete(t *testing.T, id int64) {
	t.Helper()
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		_, err := tx.Exec(remove, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// value returns what a row holds, and -1 if there is none.
func (c client) value(t *testing.T, id int64) (n int64) {
	t.Helper()
	n = -1
	err := c.Read(t.Context(), seven, func(r *shard.Reader) error {
		rows, err := r.Query(get, id)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(&n); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// holds fails the test if a row holds something else.
func (c client) holds(t *testing.T, id, want int64) {
	t.Helper()
	if got := c.value(t, id); got != want {
		t.Errorf("row %d holds %d, want %d", id, got, want)
	}
}
