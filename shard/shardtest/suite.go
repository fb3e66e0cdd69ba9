package shardtest

import (
	"errors"
	"testing"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// TestDatabase runs the suite. fresh returns a database of its own each time.
func TestDatabase(t *testing.T, fresh func(t testing.TB) Subject) {
	for name, test := range map[string]func(*testing.T, Subject){
		"what is committed is seen by others":                   testCommit,
		"an error of the function rolls back":                   testRollback,
		"a panic of the function rolls back and goes on":        testPanic,
		"a transaction reads its own writes":                    testOwnWrites,
		"a duplicate is told and the transaction goes on":       testDuplicate,
		"a locked row is told within seconds":                   testBusy,
		"a failure that the function hides commits nothing":     testHiddenFailure,
		"rows that match count, changed or not":                 testMatched,
		"concurrent increments are all there":                   testIncrements,
		"the clock is the database's":                           testClock,
		"what is queued is written with the commit":             testQueue,
		"what follows a queued statement sees it":               testQueueOrder,
		"what is queued is rolled back":                         testQueueRollback,
		"a queued statement that fails commits nothing":         testQueueFails,
		"a queued statement for a table that is gone has moved": testQueueMoved,
		"a queued statement for another shard is refused":       testQueueUnrouted,
		"a statement that has to match a row does":              testMust,
		"the fence is passed with the first query":              testFenceWithQuery,
		"rows left open do no harm":                             testOpenRows,
		"a shard's table that is gone has moved":                testGone,
		"a statement without its shard is refused":              testUnrouted,
		"a statement for another shard is refused":              testWrongShard,
		"control tables need no shard":                          testControl,
		"a context that has ended writes nothing":               testEnded,
		"a context that ends in the function writes nothing":    testEndsInFunction,
		"a database out of reach is unavailable":                testUnreachable,
		"a database that does not answer is unavailable":        testSilent,
		"an outcome is unknown when the reply to it is lost":    testReplyLost(false),
		"so it is where statements went with the commit":        testReplyLost(true),
		"an outcome is unknown when the commit itself is lost":  testCommitLost(false),
		"so it is where it took statements with it":             testCommitLost(true),
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
