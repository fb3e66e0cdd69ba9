package shardtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// TestDatabase runs the suite. fresh returns a database of its own each time.
func TestDatabase(t *testing.T, fresh func(t testing.TB) Subject) {
	for name, test := range map[string]func(*testing.T, Subject){
		"what is committed is seen by others":                  testCommit,
		"an error of the function rolls back":                  testRollback,
		"a panic of the function rolls back and goes on":       testPanic,
		"a transaction reads its own writes":                   testOwnWrites,
		"a duplicate is told and the transaction goes on":      testDuplicate,
		"a locked row is told within seconds":                  testBusy,
		"a failure that the function hides commits nothing":    testHiddenFailure,
		"rows that match count, changed or not":                testMatched,
		"concurrent increments are all there":                  testIncrements,
		"the clock is the database's":                          testClock,
		"rows left open do no harm":                            testOpenRows,
		"a shard's table that is gone has moved":               testGone,
		"a statement without its shard is refused":             testUnrouted,
		"a statement for another shard is refused":             testWrongShard,
		"control tables need no shard":                         testControl,
		"a context that has ended writes nothing":              testEnded,
		"a context that ends in the function writes nothing":   testEndsInFunction,
		"a database out of reach is unavailable":               testUnreachable,
		"a database that does not answer is unavailable":       testSilent,
		"an outcome is unknown when the reply to it is lost":   testReplyLost,
		"an outcome is unknown when the commit itself is lost": testCommitLost,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

func testCommit(t *testing.T, s Subject) {
	prepare(t, s)
	connect(t, s.Open(t)).holds(t, 1, 0)
}

func testRollback(t *testing.T, s Subject) {
	c := prepare(t, s)
	mine := errors.New("mine")
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		if _, err := tx.Exec(add, 5, 1); err != nil {
			return err
		}
		return mine
	})
	if !errors.Is(err, mine) {
		t.Errorf("%v, want the function's own", err)
	}
	c.holds(t, 1, 0)
}

func testPanic(t *testing.T, s Subject) {
	c := prepare(t, s)
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
		}()
		c.Write(t.Context(), seven, func(tx *shard.Tx) error {
			tx.Exec(add, 5, 1)
			panic("mine")
		})
	}()
	c.holds(t, 1, 0)
	c.insert(t, 2, 1) // it goes on
}

func testOwnWrites(t *testing.T, s Subject) {
	c := prepare(t, s)
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		if _, err := tx.Exec(add, 5, 1); err != nil {
			return err
		}
		var n int64
		if err := tx.QueryRow(get, 1).Scan(&n); err != nil || n != 5 {
			t.Errorf("it reads %d, %v", n, err)
		}
		c.holds(t, 1, 0) // others do not
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.holds(t, 1, 5)
}

func testDuplicate(t *testing.T, s Subject) {
	c := prepare(t, s)
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		if _, err := tx.Exec(insert, 1, 9); !errors.Is(err, shard.ErrDuplicate) {
			t.Errorf("%v, want ErrDuplicate", err)
		}
		_, err := tx.Exec(add, 5, 1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c.holds(t, 1, 5)
}

// locked runs fn while another handle holds row 1.
func locked(t *testing.T, s Subject, c client, fn func()) {
	t.Helper()
	other := connect(t, s.Open(t))
	err := other.Write(t.Context(), seven, func(tx *shard.Tx) error {
		if _, err := tx.Exec(set, 9, 1); err != nil {
			return err
		}
		fn()
		return nil
	})
	if err != nil {
		t.Errorf("the holder: %v", err)
	}
}

func testBusy(t *testing.T, s Subject) {
	c := prepare(t, s)
	locked(t, s, c, func() {
		start := time.Now()
		err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
			_, err := tx.Exec(add, 5, 1)
			return err
		})
		if !errors.Is(err, shard.ErrBusy) || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %v, want ErrBusy", err, time.Since(start))
		}
	})
	c.holds(t, 1, 9)
}

func testHiddenFailure(t *testing.T, s Subject) {
	c := prepare(t, s)
	locked(t, s, c, func() {
		err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
			tx.Exec(insert, 2, 2)
			tx.Exec(add, 5, 1) // busy
			tx.Exec(insert, 3, 3)
			return nil
		})
		if !errors.Is(err, shard.ErrBusy) {
			t.Errorf("%v, want ErrBusy", err)
		}
	})
	c.holds(t, 2, -1)
	c.holds(t, 3, -1)
}

func testMatched(t *testing.T, s Subject) {
	c := prepare(t, s)
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		for id, want := range map[int]int64{1: 1, 404: 0} {
			if n, err := tx.Exec(set, 0, id); n != want || err != nil {
				t.Errorf("row %d: %d rows, %v; want %d", id, n, err, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func testIncrements(t *testing.T, s Subject) {
	c := prepare(t, s)
	other := connect(t, s.Open(t))
	const writers, each = 8, 25
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for range each {
				handle := c
				if i%2 == 1 {
					handle = other
				}
				err := handle.Write(t.Context(), seven, func(tx *shard.Tx) error {
					_, err := tx.Exec(add, 1, 1)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	c.holds(t, 1, writers*each)
}

func testClock(t *testing.T, s Subject) {
	c := prepare(t, s)
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		if d := time.Since(tx.Now()); d < -time.Second || d > 10*time.Second {
			t.Errorf("it is %v behind", d)
		}
		if tx.Now().Location() != time.UTC {
			t.Errorf("it is in %v", tx.Now().Location())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func testOpenRows(t *testing.T, s Subject) {
	c := prepare(t, s)
	c.insert(t, 2, 0)
	all := shard.SQL("SELECT n FROM thing_#")
	for i := range 20 { // more than there are connections
		c.Read(t.Context(), seven, func(r *shard.Reader) error {
			rows, err := r.Query(all)
			if err != nil {
				t.Fatal(err)
			}
			rows.Next()
			return nil
		})
		err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
			if _, err := tx.Exec(add, 1, 1); err != nil {
				return err
			}
			rows, err := tx.Query(all)
			if err != nil {
				return err
			}
			rows.Next()
			if i%2 == 1 {
				return errors.New("rolled back")
			}
			return nil
		})
		if (err != nil) != (i%2 == 1) {
			t.Fatal(err)
		}
	}
	c.holds(t, 1, 10)
}

func testGone(t *testing.T, s Subject) {
	c := prepare(t, s)
	err := c.Write(t.Context(), seven, func(tx *shard.Tx) error {
		_, err := tx.Exec(shard.SQL("UPDATE elsewhere_# SET n = 1"))
		return err
	})
	if !errors.Is(err, shard.ErrMoved) {
		t.Errorf("writing: %v, want ErrMoved", err)
	}
	err = c.Read(t.Context(), seven, func(r *shard.Reader) error {
		return r.QueryRow(shard.SQL("SELECT n FROM elsewhere_#")).Scan(new(int))
	})
	if !errors.Is(err, shard.ErrMoved) {
		t.Errorf("reading: %v, want ErrMoved", err)
	}
}

func testControl(t *testing.T, s Subject) {
	c := prepare(t, s)
	ctx := t.Context()
	err := c.Database.Write(ctx, func(conn shard.Conn) error {
		if _, err := conn.ExecContext(ctx, "CREATE TABLE campaign (id BIGINT NOT NULL PRIMARY KEY)"); err != nil {
			return err
		}
		_, err := conn.ExecContext(ctx, "INSERT INTO campaign (id) VALUES (?)", 5)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var id int
	err = c.Database.Read(ctx, func(conn shard.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT id FROM campaign").Scan(&id)
	})
	if err != nil || id != 5 {
		t.Errorf("%d, %v", id, err)
	}
	err = c.Database.Read(ctx, func(conn shard.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT id FROM campaigns").Scan(&id)
	})
	if err == nil || errors.Is(err, shard.ErrMoved) {
		t.Errorf("a control table that is missing: %v", err)
	}
}

func testEnded(t *testing.T, s Subject) {
	c := prepare(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.Write(ctx, seven, func(tx *shard.Tx) error {
		_, err := tx.Exec(add, 5, 1)
		return err
	})
	if !errors.Is(err, shard.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("writing: %v, want ErrUnavailable", err)
	}
	err = c.Read(ctx, seven, func(r *shard.Reader) error { return r.QueryRow(get, 1).Scan(new(int)) })
	if !errors.Is(err, shard.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("reading: %v, want ErrUnavailable", err)
	}
	c.holds(t, 1, 0)
}

func testEndsInFunction(t *testing.T, s Subject) {
	c := prepare(t, s)
	for name, then := range map[string]func(*shard.Tx) error{
		"and it goes on": func(tx *shard.Tx) error {
			_, err := tx.Exec(add, 5, 1)
			return err
		},
		"and it reads on": func(tx *shard.Tx) error { return tx.QueryRow(get, 1).Scan(new(int)) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Write(ctx, seven, func(tx *shard.Tx) error {
			if _, err := tx.Exec(add, 5, 1); err != nil {
				return err
			}
			cancel()
			return then(tx)
		})
		if !errors.Is(err, shard.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
	c.holds(t, 1, 0)
	c.insert(t, 2, 1)
}
