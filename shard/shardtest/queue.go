package shardtest

import (
	"errors"
	"testing"

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
