package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/internal/realtest"
)

// planText is the plan of these tests; a state is added.
const planText = `name: room_events
source: {kind: postgres, dsn: "${PG_DSN}", table: room_events, key: [id]}
sink: {kind: dynamodb, table: "${TABLE}", region: us-east-1, endpoint: "${DYNAMODB_ENDPOINT}", key: {partition: room_id, sort: id}, create: true}
columns:
  data: {encode: map}
write: {mode: guarded, version: version}
workers: 2
page_rows: 50
`

const (
	stateInFile  = "state: {kind: file, keeper_interval: 200ms}\n"
	stateInRedis = "state: {kind: redis, url: \"${REDIS_URL}\", prefix: \"${PREFIX}\", lock_ttl: 2s, keeper_interval: 200ms}\n"
)

// A migrating is a table in PostgreSQL on its way to one in DynamoDB.
type migrating struct {
	t     testing.TB
	dir   string // with plan.yaml
	db    *pgx.Conn
	table string // of the sink
	env   []string
}

// newMigrating makes a table of rows, the same in each of hours hours of the
// 20th October 2024.
func newMigrating(t testing.TB, state string, hours, rows int) *migrating {
	t.Helper()
	dsn := realtest.PostgresDSN(t)
	url, prefix := realtest.RedisPrefix(t)
	m := &migrating{t: t, dir: t.TempDir(), table: realtest.TableName()}
	m.env = []string{"PG_DSN=" + dsn, "TABLE=" + m.table, "DYNAMODB_ENDPOINT=" + realtest.DynaliteURL(t), "REDIS_URL=" + url, "PREFIX=" + prefix}
	m.write("plan.yaml", planText+state)
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(context.Background()) })
	m.db = db
	m.exec(`CREATE TABLE room_events (id text COLLATE "C" PRIMARY KEY, room_id uuid NOT NULL, data jsonb NOT NULL, version bigint NOT NULL)`)
	for h := range hours {
		m.fill(h, rows)
	}
	m.exec("ANALYZE room_events")
	return m
}

func (m *migrating) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// variable returns a value of the environment.
func (m *migrating) variable(name string) string {
	for _, v := range m.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

func (m *migrating) exec(sql string, args ...any) {
	m.t.Helper()
	if _, err := m.db.Exec(context.Background(), sql, args...); err != nil {
		m.t.Fatalf("%s: %v", sql, err)
	}
}

// fill puts rows into an hour.
func (m *migrating) fill(hour, rows int) {
	m.t.Helper()
	values := make([][]any, rows)
	for i := range rows {
		values[i] = []any{ulidAt(hour, i), fmt.Sprintf("00000000-0000-4000-8000-%012d", i%7), fmt.Sprintf(`{"n": %d, "text": "event"}`, i), int64(1)}
	}
	if _, err := m.db.CopyFrom(context.Background(), pgx.Identifier{"room_events"}, []string{"id", "room_id", "data", "version"}, pgx.CopyFromRows(values)); err != nil {
		m.t.Fatal(err)
	}
}

// ulidAt returns the ULID of an event of an hour.
func ulidAt(hour, n int) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	ms := time.Date(2024, 10, 20, hour, 0, 0, 0, time.UTC).UnixMilli() + int64(n)
	var b [10]byte
	for i := 9; i >= 0; i-- {
		b[i] = digits[ms&31]
		ms >>= 5
	}
	return string(b[:]) + fmt.Sprintf("%016d", n)
}

// shell runs a line of shell beside the plan.
func (m *migrating) shell(line string) (string, int) {
	m.t.Helper()
	return shell(m.t, m.dir, line, m.env...)
}

// want runs a line and checks its exit code and that it prints what matches.
func (m *migrating) want(line string, code int, matching string) string {
	m.t.Helper()
	out, got := m.shell(line)
	if got != code || !regexp.MustCompile(matching).MatchString(out) {
		m.t.Errorf("$ %s\n%s[exit %d], want %d and %q", line, out, got, code, matching)
	}
	return out
}

// pod starts a pod.
func (m *migrating) pod(args ...string) *process {
	m.t.Helper()
	return m.command(append([]string{"run", "--interval", "200ms"}, args...)...)
}

// command starts a command on the plan.
func (m *migrating) command(args ...string) *process {
	m.t.Helper()
	p := &process{out: newLines(), err: newLines(), done: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(binary, "tallystick"), append([]string{"migrate", "-f", "plan.yaml"}, args...)...)
	p.cmd.Dir, p.cmd.Env = m.dir, environment(m.env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	if err := p.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // its exit code is asked for later
		close(p.done)
	}()
	m.t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// ended waits for a pod and checks its exit code.
func (m *migrating) ended(p *process, code int) {
	m.t.Helper()
	select {
	case <-p.done:
	case <-time.After(40 * time.Second):
		p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.done
		m.t.Fatalf("the pod does not end: %s%s", p.out, p.err)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		m.t.Fatalf("exit %d, want %d: %s%s", got, code, p.out, p.err)
	}
}
