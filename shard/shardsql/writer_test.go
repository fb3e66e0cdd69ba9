package shardsql_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// control is a database with a table thing(id, n) that no shard owns.
func control(t testing.TB, db shard.Database) shard.Database {
	t.Helper()
	if err := execute(t.Context(), db, "CREATE TABLE thing (id BIGINT NOT NULL PRIMARY KEY, n BIGINT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return db
}

func execute(ctx context.Context, db shard.Database, text string, args ...any) error {
	return db.Write(ctx, func(c shard.Conn) error {
		_, err := c.ExecContext(ctx, text, args...)
		return err
	})
}

const insertThing = "INSERT INTO thing (id, n) VALUES (?, 0)"

func count(t testing.TB, db shard.Database) (n int) {
	t.Helper()
	err := db.Read(t.Context(), func(c shard.Conn) error {
		return c.QueryRowContext(t.Context(), "SELECT count(*) FROM thing").Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// hold runs a write whose function stays until release is called, which returns
// what the write ended with.
func hold(t testing.TB, db shard.Database, id int) (release func() error) {
	t.Helper()
	in, leave, out := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ctx := t.Context()
	go func() {
		out <- db.Write(ctx, func(c shard.Conn) error {
			_, err := c.ExecContext(ctx, insertThing, id)
			close(in)
			<-leave
			return err
		})
	}()
	<-in
	return func() error {
		close(leave)
		return <-out
	}
}

// Rows that are seen together were committed together: a reader that looks all
// the time never sees a part of the group that waited.
func TestWhatWaitsIsCommittedTogether(t *testing.T) {
	db := control(t, openSQLite(t, filepath.Join(t.TempDir(), "a.db")))
	const waiting = 20
	var writing sync.WaitGroup
	var refused sync.WaitGroup
	release := hold(t, db, 0)
	in := make(chan struct{}, waiting)
	for i := range waiting {
		writing.Go(func() {
			in <- struct{}{}
			if err := execute(t.Context(), db, insertThing, 1+i); err != nil {
				t.Error(err)
			}
		})
		refused.Go(func() { // each second one fails
			if err := execute(t.Context(), db, insertThing, 0); !errors.Is(err, shard.ErrDuplicate) {
				t.Errorf("%v, want ErrDuplicate", err)
			}
		})
	}
	for range waiting {
		<-in
	}
	if n := count(t, db); n != 0 {
		t.Errorf("%d rows are seen before the commit", n)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	writing.Wait()
	refused.Wait()
	if n := count(t, db); n != 1+waiting {
		t.Errorf("%d rows, want %d", n, 1+waiting)
	}
}

func TestACallerWhoseTimeEndsInTheQueueIsSkipped(t *testing.T) {
	db := control(t, openSQLite(t, filepath.Join(t.TempDir(), "a.db")))
	release := hold(t, db, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := db.Write(ctx, func(shard.Conn) error {
		t.Error("its function runs")
		return nil
	})
	if !errors.Is(err, shard.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// The first of a group has done its part and waits for the commit while another
// has the floor.
func TestACallerWhoseTimeEndsBeforeTheCommitDoesNotClaimFailure(t *testing.T) {
	db := control(t, openSQLite(t, filepath.Join(t.TempDir(), "a.db")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started, first := make(chan struct{}), make(chan error, 1)
	second, queued := make(chan error, 1), make(chan struct{})
	release := make(chan struct{})
	go func() {
		first <- db.Write(ctx, func(c shard.Conn) error {
			close(started)
			<-queued
			time.Sleep(5 * time.Millisecond) // so that the second waits; if it does not yet, the first just succeeds
			_, err := c.ExecContext(ctx, insertThing, 1)
			return err
		})
	}()
	<-started
	go func() {
		close(queued)
		second <- db.Write(t.Context(), func(c shard.Conn) error {
			cancel()
			<-release
			_, err := c.ExecContext(t.Context(), insertThing, 2)
			return err
		})
	}()
	if err := <-first; err != nil && !errors.Is(err, shard.ErrUnknown) {
		t.Errorf("%v, want ErrUnknown", err)
	}
	close(release)
	if err := <-second; err != nil {
		t.Error(err)
	}
	if n := count(t, db); n != 2 {
		t.Errorf("%d rows, want 2: the first was committed with the second", n)
	}
}

func TestCloseEndsWhatWaitsAndFinishesWhatRuns(t *testing.T) {
	db, err := shardsql.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "a.db"), shardsql.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	control(t, db)
	release := hold(t, db, 0)
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	if err := release(); err != nil {
		t.Errorf("under way: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := execute(t.Context(), db, insertThing, 1); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("afterwards: %v, want ErrUnavailable", err)
	}
}

func TestALeakedConnectionIsRefused(t *testing.T) {
	db := control(t, openSQLite(t, filepath.Join(t.TempDir(), "a.db")))
	var leaked shard.Conn
	if err := db.Write(t.Context(), func(c shard.Conn) error { leaked = c; return nil }); err != nil {
		t.Fatal(err)
	}
	err := db.Write(t.Context(), func(shard.Conn) error {
		if _, err := leaked.ExecContext(t.Context(), insertThing, 1); err == nil {
			t.Error("it writes into another's transaction")
		}
		if err := leaked.QueryRowContext(t.Context(), "SELECT 1").Err(); err == nil {
			t.Error("it reads in another's transaction")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadsCannotWrite(t *testing.T) {
	db := control(t, openSQLite(t, filepath.Join(t.TempDir(), "a.db")))
	err := db.Read(t.Context(), func(c shard.Conn) error {
		_, err := c.ExecContext(t.Context(), insertThing, 1)
		return err
	})
	if err == nil || count(t, db) != 0 {
		t.Errorf("%v, %d rows", err, count(t, db))
	}
}

// TestFailuresWaitForWhatTheySaw has a function fail because of a row that another
// one wrote in the same commit: who is told of it is to find the row.
func TestFailuresWaitForWhatTheySaw(t *testing.T) {
	db, err := shardsql.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "a.db"), shardsql.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	control(t, db)
	refusal, saw := errors.New("there are some"), 0
	for id := range 300 {
		release, out := hold(t, db, id), make(chan int, 1)
		go func() {
			n := 0
			err := db.Write(t.Context(), func(c shard.Conn) error {
				if err := c.QueryRowContext(t.Context(), "SELECT count(*) FROM thing").Scan(&n); err != nil {
					return err
				}
				return refusal
			})
			if !errors.Is(err, refusal) {
				t.Errorf("%v, want %v", err, refusal)
			}
			out <- n - count(t, db)
		}()
		if err := release(); err != nil {
			t.Fatal(err)
		}
		if missing := <-out; missing > 0 {
			saw++
		}
	}
	if saw > 0 {
		t.Errorf("%d of 300 were told of a row that was not there", saw)
	}
}
