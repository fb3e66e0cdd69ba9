package shardtest

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// many is more than any database lets wait.
const many = 50

func testQueue(t *testing.T, s Subject) {
	c := prepare(t, s)
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		for i := range many {
			if err := tx.Queue(insert, 100+i, i); err != nil {
				return err
			}
		}
		return tx.Queue(set, 5, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	c.holds(t, 1, 5)
	for i := range int64(many) {
		c.holds(t, 100+i, i)
	}
}

// testQueueOrder: what follows sees what was queued, and its answer is its own.
func testQueueOrder(t *testing.T, s Subject) {
	c := prepare(t, s)
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		if err := tx.Queue(insert, 2, 7); err != nil {
			return err
		}
		var n int64
		if err := tx.QueryRow(get, 2).Scan(&n); err != nil || n != 7 {
			t.Errorf("it reads %d, %v", n, err)
		}
		if err := tx.Queue(insert, 3, 7); err != nil {
			return err
		}
		for id, want := range map[int]int64{3: 1, 404: 0} {
			if n, err := tx.Exec(add, 1, id); n != want || err != nil {
				t.Errorf("row %d: %d rows, %v; want %d", id, n, err, want)
			}
		}
		return tx.Queue(add, 1, 3)
	})
	if err != nil {
		t.Fatal(err)
	}
	c.holds(t, 2, 7)
	c.holds(t, 3, 9)
}

// testQueueRollback: what was queued goes with the transaction, and does not come
// back in the next one on its connection.
func testQueueRollback(t *testing.T, s Subject) {
	c := prepare(t, s)
	mine := errors.New("mine")
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		if err := tx.Queue(insert, 2, 7); err != nil {
			return err
		}
		return mine
	})
	if !errors.Is(err, mine) {
		t.Errorf("%v, want the function's own", err)
	}
	c.insert(t, 3, 1)
	c.holds(t, 2, -1)
}

// testQueueFails: wherever a queued statement's error comes out, nothing is
// written, and the handle goes on.
func testQueueFails(t *testing.T, s Subject) {
	c := prepare(t, s)
	for name, then := range map[string]func(*shard.Tx) error{
		"at the commit": func(tx *shard.Tx) error { return tx.Queue(set, 5, 1) },
		"at the next statement": func(tx *shard.Tx) error {
			_, err := tx.Exec(set, 5, 1)
			return err
		},
		"at the next query": func(tx *shard.Tx) error {
			var n int64
			return tx.QueryRow(get, 1).Scan(&n)
		},
	} {
		err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
			if _, err := tx.Exec(insert, 2, 7); err != nil {
				return err
			}
			if err := tx.Queue(insert, 1, 9); err != nil {
				return err
			}
			return then(tx)
		})
		if !errors.Is(err, shard.ErrDuplicate) {
			t.Errorf("%s: %v, want ErrDuplicate", name, err)
		}
		c.holds(t, 1, 0)
		c.holds(t, 2, -1)
		c.insert(t, 3, 1)
		c.delete(t, 3)
	}
}

// testQueueMoved: a table that went away is told as such, also by the commit.
func testQueueMoved(t *testing.T, s Subject) {
	c := prepare(t, s)
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error { return tx.Queue(shard.SQL("UPDATE gone_# SET n = 1")) })
	if !errors.Is(err, shard.ErrMoved) {
		t.Errorf("%v, want ErrMoved", err)
	}
}

// testQueueUnrouted: a statement that may wait passes the guard like any other.
func testQueueUnrouted(t *testing.T, s Subject) {
	c := prepare(t, s)
	eights := shard.SQL("UPDATE thing_08 SET n = 1 WHERE id <> #")
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error { return tx.Queue(eights) })
	if !errors.Is(err, shard.ErrUnrouted) {
		t.Errorf("%v, want ErrUnrouted", err)
	}
}

// testMust: a statement that had to match a row and did not takes the transaction
// with it, also where its function passes over that, and one that did not change
// the row it matched does not.
func testMust(t *testing.T, s Subject) {
	c := prepare(t, s)
	for name, then := range map[string]func(*shard.Tx) error{
		"at the commit":         func(tx *shard.Tx) error { return tx.Queue(insert, 1, 9) }, // were a duplicate
		"at the next statement": func(tx *shard.Tx) error { _, err := tx.Exec(set, 5, 1); return err },
		"at the next query":     func(tx *shard.Tx) error { return tx.QueryRow(get, 1).Scan(new(int)) },
	} {
		for _, passedOver := range []bool{false, true} {
			err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
				if err := tx.Queue(insert, 2, 7); err != nil {
					return err
				}
				if err := tx.Must(set, 5, 404); err != nil && !passedOver {
					return err
				}
				if err := then(tx); !passedOver {
					return err
				}
				return nil
			})
			if !errors.Is(err, shard.ErrNoMatch) {
				t.Errorf("%s, passed over: %v: %v, want ErrNoMatch", name, passedOver, err)
			}
			c.holds(t, 1, 0)
			c.holds(t, 2, -1)
		}
	}
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		for range many { // the same value each time
			if err := tx.Must(set, 5, 1); err != nil {
				return err
			}
		}
		return tx.Queue(insert, 2, 7)
	})
	if err != nil {
		t.Error(err)
	}
	c.holds(t, 1, 5)
	c.holds(t, 2, 7)
}

// testFenceWithQuery: a transaction whose first statement is a query has passed the
// fence with it, sees its rows, and the clock.
func testFenceWithQuery(t *testing.T, s Subject) {
	c := prepare(t, s)
	all := shard.SQL("SELECT id, n FROM thing_# ORDER BY id")
	c.insert(t, 2, 7)
	for name, first := range map[string]func(*shard.Tx) error{
		"a row": func(tx *shard.Tx) error {
			var n int64
			err := tx.QueryRow(get, 2).Scan(&n)
			if err == nil && n != 7 {
				t.Errorf("it reads %d", n)
			}
			return err
		},
		"rows": func(tx *shard.Tx) error {
			rows, err := tx.Query(all)
			if err != nil {
				return err
			}
			defer rows.Close()
			n := 0
			for ; rows.Next(); n++ {
			}
			if n != 2 {
				t.Errorf("%d rows", n)
			}
			return rows.Err()
		},
		"rows left unread": func(tx *shard.Tx) error {
			rows, err := tx.Query(all)
			if err != nil {
				return err
			}
			return rows.Close()
		},
		"no row": func(tx *shard.Tx) error {
			if err := tx.QueryRow(get, 404).Scan(new(int)); !errors.Is(err, sql.ErrNoRows) {
				t.Errorf("%v, want no rows", err)
			}
			return nil
		},
	} {
		err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
			if err := first(tx); err != nil {
				return err
			}
			if ago := time.Since(tx.Now()).Abs(); ago > time.Minute {
				t.Errorf("%s: the clock is %v away", name, ago)
			}
			return tx.Queue(add, 1, 1)
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.holds(t, 1, 4)
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		return tx.QueryRow(shard.SQL("SELECT n FROM elsewhere_#")).Scan(new(int))
	})
	if !errors.Is(err, shard.ErrMoved) {
		t.Errorf("from a table that is gone: %v, want ErrMoved", err)
	}
	wrong := shard.SQL("SELECT nothing FROM thing_#")
	err = c.Write(t.Context(), seven, func(tx *shard.Tx) error { return tx.QueryRow(wrong).Scan(new(int)) })
	if err == nil || errors.Is(err, shard.ErrMoved) {
		t.Errorf("of a column that is not there: %v", err)
	}
	c.insert(t, 3, 0) // and it goes on
}
