package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponrpc"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// crashing builds the program with the points where it can be killed, once.
var crashing = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binary, "crashing")
	out, err := exec.Command("go", "build", "-tags", "crashpoints", "-o", path, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return path, err
})

// A couponHome is where servers of a test keep coupons, one server at a time, and
// the same databases as this process has them open.
type couponHome struct {
	args    []string // of serve
	direct  *couponsql.Platform
	driver  string // of the control database
	control string
}

// embeddedHome is a data folder.
func embeddedHome(t *testing.T) *couponHome {
	h := &couponHome{args: []string{"--data", t.TempDir()}}
	h.crash(t).stop(t) // makes the folder
	control, shards := couponsql.Folder(filepath.Join(h.args[1], "coupons"), 8)
	h.open(t, "sqlite", couponsql.Options{Control: control, Shards: shards, Open: func(ctx context.Context, at string) (couponsql.Database, error) {
		return shardsql.OpenSQLite(ctx, at, shardsql.SQLiteOptions{})
	}})
	return h
}

// mariadbHome is a server with a control database and two for shards.
func mariadbHome(t *testing.T) *couponHome {
	server := realtest.MariaDB(t, "innodb-file-per-table=0")
	o := couponsql.Options{Control: couponsql.Source{Name: "control", At: server.CreateDatabase("control")}}
	text := "control: " + o.Control.At + "\nshards:\n"
	for _, name := range []string{"db0", "db1"} {
		o.Shards = append(o.Shards, couponsql.Source{Name: name, At: server.CreateDatabase(name)})
		text += fmt.Sprintf("  - {name: %s, dsn: %q}\n", name, server.DSN(name))
	}
	text += "check_keys:\n  - {id: k1, created: 2026-01-01T00:00:00Z, secret: \"00112233445566778899aabbccddeeff\"}\n"
	file := filepath.Join(t.TempDir(), "coupons.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Open = func(ctx context.Context, at string) (couponsql.Database, error) {
		return shardsql.OpenMySQL(ctx, shardsql.MySQLOptions{DSN: at})
	}
	h := &couponHome{args: []string{"--data", t.TempDir(), "--coupons", file}}
	h.open(t, "mysql", o)
	return h
}

func (h *couponHome) open(t *testing.T, driver string, o couponsql.Options) {
	t.Helper()
	h.driver, h.control = driver, o.Control.At
	o.EnsureFence, o.Fenced = shardsql.EnsureFence, shardsql.Fenced
	var err error
	if h.direct, err = couponsql.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.direct.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A couponServer is a running server and a client of it.
type couponServer struct {
	*process
	*couponrpc.Client
}

// crash starts a server that dies where env says.
func (h *couponHome) crash(t *testing.T, env ...string) *couponServer {
	t.Helper()
	path, err := crashing()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{out: newLines(), err: newLines(), done: make(chan struct{})}
	p.cmd = exec.Command(path, append([]string{"serve", "--listen", "127.0.0.1:0"}, h.args...)...)
	p.cmd.Env = environment(env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // its exit code is asked for later
		close(p.done)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
	})
	ready := p.out.wait(t, p.done, regexp.MustCompile(`is ready at (\S+),`))
	if ready == nil {
		t.Fatalf("the server ended: %s%s", p.out, p.err)
	}
	c, err := couponrpc.Dial(ready[1], couponrpc.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &couponServer{p, c}
}

// died waits until the server has been killed, by itself.
func (s *couponServer) died(t *testing.T, point string) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: the server does not come there: %s", point, s.err)
	}
	if status := s.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Fatalf("%s: the server ended with %v: %s", point, status, s.err)
	}
}

// persist makes a call until its outcome is one that stays.
func persist(ctx context.Context, call func(context.Context) error) error {
	for {
		err := call(ctx)
		if r, ok := errors.AsType[*coupon.Refusal](err); !ok || !r.Retryable || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}
