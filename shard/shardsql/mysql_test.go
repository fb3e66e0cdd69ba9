package shardsql_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

func TestSessionsArePinnedWhateverTheDSNSays(t *testing.T) {
	db := openMySQL(t, realtest.MariaDBDSN(t)+"?time_zone=%27%2B05%3A00%27&sql_mode=%27%27&clientFoundRows=false&innodb_lock_wait_timeout=50&interpolateParams=false&collation=latin1_bin")
	for variable, want := range map[string]string{
		"tx_isolation":             "READ-COMMITTED",
		"time_zone":                "+00:00",
		"innodb_lock_wait_timeout": "1",
		"lock_wait_timeout":        "1",
		"idle_transaction_timeout": "10",
		"character_set_connection": "utf8mb4",
		"collation_connection":     "utf8mb4_bin",
		"autocommit":               "1",
	} {
		if got := variableOf(t, db, variable); got != want {
			t.Errorf("%s is %s, want %s", variable, got, want)
		}
	}
	if mode := variableOf(t, db, "sql_mode"); !strings.Contains(mode, "STRICT_ALL_TABLES") {
		t.Errorf("sql_mode is %s", mode)
	}
}

func variableOf(t *testing.T, db shard.Database, name string) (value string) {
	t.Helper()
	err := db.Read(t.Context(), func(c shard.Conn) error {
		return c.QueryRowContext(t.Context(), "SELECT @@SESSION."+name).Scan(&value)
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestOpenMySQLRefuses(t *testing.T) {
	for name, c := range map[string]struct{ dsn, want string }{
		"several statements a text":  {"u:secret@tcp(127.0.0.1:1)/db?multiStatements=true", "multiStatements"},
		"an unreadable DSN":          {"u:secret@(tcp:127.0.0.1:1/db", "cannot be read"},
		"another unreadable DSN":     {"u:secret/x@y", "cannot be read"},
		"a bad parameter":            {"u:secret@tcp(127.0.0.1:1)/db?parseTime=secret", "cannot be read"},
		"a server that is not there": {"u:secret@tcp(" + realtest.FreeAddr(t) + ")/db", "database db at 127.0.0.1:"},
		"a wrong password":           {strings.Replace(realtest.MariaDBDSN(t), "root@", "root:secret@", 1), "Access denied"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := shardsql.OpenMySQL(t.Context(), shardsql.MySQLOptions{DSN: c.dsn})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, want %q and no secret", err, c.want)
			}
		})
	}
}

// Two transactions lock two rows in opposite order. One of them is the victim
// and runs again.
func TestADeadlockIsRetried(t *testing.T) {
	db := control(t, openMySQL(t, realtest.MariaDBDSN(t)))
	for id := range 2 {
		if err := execute(t.Context(), db, insertThing, id); err != nil {
			t.Fatal(err)
		}
	}
	const update = "UPDATE thing SET n = n + 1 WHERE id = ?"
	var tries atomic.Int32
	both := make(chan struct{}, 2)
	results := make(chan error, 2)
	for id := range 2 {
		go func() {
			first := true
			results <- db.Write(t.Context(), func(c shard.Conn) error {
				tries.Add(1)
				if _, err := c.ExecContext(t.Context(), update, id); err != nil {
					return err
				}
				if first {
					first = false
					both <- struct{}{}
					for len(both) < 2 {
						time.Sleep(time.Millisecond)
					}
				}
				_, err := c.ExecContext(t.Context(), update, 1-id)
				return err
			})
		}()
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if tries.Load() != 3 {
		t.Errorf("%d tries, want 3", tries.Load())
	}
	var sum int
	db.Read(t.Context(), func(c shard.Conn) error {
		return c.QueryRowContext(t.Context(), "SELECT sum(n) FROM thing").Scan(&sum)
	})
	if sum != 4 {
		t.Errorf("the sum is %d, want 4", sum)
	}
}

// Writes wait for the one connection that a write has, reads for that of a read.
func TestWaitingForAConnectionEndsWithTheContext(t *testing.T) {
	db := control(t, openMySQLWith(t, shardsql.MySQLOptions{DSN: realtest.MariaDBDSN(t), MaxConns: 1}))
	read := func(ctx context.Context, text string) error {
		return db.Read(ctx, func(c shard.Conn) error { return c.QueryRowContext(ctx, text).Scan(new(int)) })
	}
	release := hold(t, db, 0)
	reading := make(chan error)
	go func() { reading <- read(t.Context(), "SELECT sleep(0.5)") }()
	for name, call := range map[string]func(context.Context) error{
		"write": func(ctx context.Context) error { return execute(ctx, db, insertThing, 1) },
		"read": func(ctx context.Context) error {
			for ctx.Err() == nil { // the other one may begin later
				if err := read(ctx, "SELECT 1"); err != nil {
					return err
				}
			}
			return ctx.Err()
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := call(ctx); !errors.Is(err, shard.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
		cancel()
	}
	if err := errors.Join(<-reading, release()); err != nil {
		t.Fatal(err)
	}
}

// A server that is stopped accepts connections, by its kernel, and answers
// nothing.
func TestAStoppedServerHoldsNobody(t *testing.T) {
	server := realtest.MariaDB(t)
	db := control(t, openMySQLWith(t, shardsql.MySQLOptions{DSN: server.CreateDatabase("stopped"), MaxConns: 4}))
	const limit, slack = 300 * time.Millisecond, 5 * time.Second
	begun := make(chan struct{})
	committing := make(chan error, 1)
	go func() { // one is about to commit
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		committing <- db.Write(ctx, func(c shard.Conn) error {
			_, err := c.ExecContext(ctx, insertThing, 1000)
			server.Pause()
			close(begun)
			return err
		})
	}()
	<-begun
	start := time.Now()
	results := make(chan error, 16)
	for i := range cap(results) {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			results <- execute(ctx, db, insertThing, i)
		}()
	}
	for range cap(results) {
		if err := <-results; !errors.Is(err, shard.ErrUnavailable) {
			t.Errorf("%v, want ErrUnavailable", err)
		}
	}
	if err := <-committing; !errors.Is(err, shard.ErrUnknown) && !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("the commit: %v, want ErrUnknown", err)
	}
	if took := time.Since(start); took > limit+slack {
		t.Errorf("they were held for %v", took)
	}
	server.Resume()
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		if err := execute(ctx, db, insertThing, 2000+i); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		cancel()
	}
}

func TestAKilledServerIsUnavailableUntilItIsBack(t *testing.T) {
	server := realtest.MariaDB(t)
	db := control(t, openMySQL(t, server.CreateDatabase("killed")))
	err := db.Write(t.Context(), func(c shard.Conn) error {
		if _, err := c.ExecContext(t.Context(), insertThing, 1); err != nil {
			return err
		}
		server.Kill()
		_, err := c.ExecContext(t.Context(), insertThing, 2)
		return err
	})
	if !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("in a transaction: %v, want ErrUnavailable", err)
	}
	if err := execute(t.Context(), db, insertThing, 3); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("while it is down: %v, want ErrUnavailable", err)
	}
	server.Start()
	if err := execute(t.Context(), db, insertThing, 4); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	if n := count(t, db); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestPreparedStatementsPassTheGuardEachTime(t *testing.T) {
	// An argument too long to be part of a text makes the driver prepare.
	db := openMySQL(t, realtest.MariaDBDSN(t)+"?maxAllowedPacket=1024")
	ctx := t.Context()
	err := db.Read(ctx, func(c shard.Conn) error {
		var n int
		if err := c.QueryRowContext(ctx, "SELECT length(?)", strings.Repeat("x", 2000)).Scan(&n); err != nil || n != 2000 {
			return fmt.Errorf("%d, %w", n, err)
		}
		_, err := c.ExecContext(ctx, "UPDATE coupon_07 SET a = ?", strings.Repeat("x", 2000))
		return err
	})
	if !errors.Is(err, shard.ErrUnrouted) {
		t.Errorf("%v, want ErrUnrouted", err)
	}
}

func TestATextIsOneStatementForItsCaller(t *testing.T) {
	db := openMySQL(t, realtest.MariaDBDSN(t))
	err := execute(t.Context(), db, "SET @a = 1; SET @b = 2")
	if err == nil || !strings.Contains(err.Error(), "semicolon") {
		t.Errorf("in a transaction: %v, want an error about the semicolon", err)
	}
	err = db.Read(t.Context(), func(c shard.Conn) error {
		_, err := c.ExecContext(t.Context(), "SET @a = 1; SET @b = 2")
		return err
	})
	if err == nil {
		t.Error("two statements were run")
	}
}

// TestOnlyARowThatHadToMatchIsNoMatch: its error is that of a number out of range,
// which statements of callers may have, too.
func TestOnlyARowThatHadToMatchIsNoMatch(t *testing.T) {
	db := openMySQL(t, realtest.MariaDBDSN(t))
	err := db.Write(t.Context(), func(c shard.Conn) error {
		_, err := c.ExecContext(t.Context(), "SET @n = 9223372036854775807 + 1")
		return err
	})
	if err == nil || errors.Is(err, shard.ErrNoMatch) {
		t.Errorf("%v, want that the number is out of range", err)
	}
}
