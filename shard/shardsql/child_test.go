package shardsql_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// childOf makes this program a writer for a test: the databases a and b, and
// where it stops.
const childOf = "SHARDSQL_TEST_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(childOf); job != "" {
		part := strings.Split(job, " ")
		fmt.Println(writeNote(context.Background(), part[0], part[1], part[2]))
		return
	}
	os.Exit(m.Run())
}

// writeNote writes note 1 with the map of before the move. It says where it is
// and waits for a line, either before it begins or within its transaction. It
// returns "done" or what went wrong.
func writeNote(ctx context.Context, a, b, stop string) string {
	dbs := map[string]shard.Database{}
	for name, where := range map[string]string{"a": a, "b": b} {
		db, err := openAny(ctx, where)
		if err != nil {
			return err.Error()
		}
		dbs[name] = db
	}
	wait := func() {
		fmt.Println(stop)
		bufio.NewReader(os.Stdin).ReadString('\n')
	}
	if stop == "before" {
		dbs["a"] = waiting{dbs["a"], wait}
	}
	c, err := shard.New(onA(), dbs, shard.Options{
		Timeout: time.Minute,
		Reload:  func(context.Context) (shard.Map, error) { return onB(), nil },
	})
	if err != nil {
		return err.Error()
	}
	err = c.Write(ctx, three, func(tx *shard.Tx) error {
		_, err := tx.Exec(insertNote, 1)
		if stop == "within" {
			wait()
		}
		return err
	})
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, shard.ErrUnavailable):
		return "unavailable"
	}
	return err.Error()
}

// waiting is a database whose writers wait before they begin.
type waiting struct {
	shard.Database
	wait func()
}

func (w waiting) Write(ctx context.Context, fn func(shard.Conn) error) error {
	w.wait()
	return w.Database.Write(ctx, fn)
}

func openAny(ctx context.Context, where string) (shard.Database, error) {
	if filepath.IsAbs(where) {
		return shardsql.OpenSQLite(ctx, where, shardsql.SQLiteOptions{})
	}
	return shardsql.OpenMySQL(ctx, shardsql.MySQLOptions{DSN: where, IdleTx: time.Second})
}

// A child is a writer in a process of its own.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

// startChild starts a writer and stops it, by SIGSTOP, where it should stop.
func startChild(t *testing.T, a, b, stop string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childOf+"="+a+" "+b+" "+stop)
	c.cmd.Stderr = t.Output()
	realtest.DieWithTest(c.cmd)
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	})
	if line := c.line(); line != stop {
		t.Fatalf("the child says %q, want %q", line, stop)
	}
	c.signal(syscall.SIGSTOP)
	return c
}

func (c *child) line() string {
	c.t.Helper()
	line, err := c.lines.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// resume lets it go on and returns what it ends with.
func (c *child) resume() string {
	c.t.Helper()
	c.signal(syscall.SIGCONT)
	fmt.Fprintln(c.in)
	return c.line()
}

func TestAStoppedProcessThatWakesUpAfterTheMoveLandsWhereTheShardIs(t *testing.T) {
	dir := t.TempDir()
	for name, where := range map[string][2]string{
		"mariadb": {realtest.MariaDBDSN(t), realtest.MariaDBDSN(t)},
		"sqlite":  {filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := openHere(t, where[0]), openHere(t, where[1])
			before, after := prepareMove(t, a, b)
			stopped := startChild(t, where[0], where[1], "before")
			if err := raise(t, a, 2); err != nil {
				t.Fatal(err)
			}
			if got := stopped.resume(); got != "done" {
				t.Errorf("the child says %q", got)
			}
			notes(t, before, after, 0, 1)
		})
	}
}

// A process that is stopped within its transaction holds the mover up until the
// server ends that transaction.
func TestAProcessStoppedWithinItsTransactionCannotCommit(t *testing.T) {
	dsnA, dsnB := realtest.MariaDBDSN(t), realtest.MariaDBDSN(t)
	a, b := openHere(t, dsnA), openHere(t, dsnB)
	before, after := prepareMove(t, a, b)
	stopped := startChild(t, dsnA, dsnB, "within")
	err := raise(t, a, 2)
	for tries := 1; errors.Is(err, shard.ErrBusy) && tries < 30; tries++ {
		err = raise(t, a, 2)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := stopped.resume(); got != "unavailable" {
		t.Errorf("the child says %q", got)
	}
	notes(t, before, after, 0, 0)
}

func openHere(t *testing.T, where string) shard.Database {
	t.Helper()
	db, err := openAny(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.(io.Closer).Close() })
	return db
}
