package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migpg"
)

// eventsPlan is the plan of the design, with a shorter keeper's interval.
const eventsPlan = `name: room_events
source: {kind: postgres, dsn: "${PG_DSN}", table: room_events, key: [id]}
sink: {kind: dynamodb, table: room_events, region: us-east-1, endpoint: "${DYNAMODB_ENDPOINT}", key: {partition: room_id, sort: id}, create: true}
columns:
  data: {as: data, encode: string}
slots: {by: ulid, width: 1h, sweep: 24h}
write: {mode: guarded, version: version}
state: {kind: redis, url: "${REDIS_URL}", lock_ttl: 2s, keeper_interval: 500ms}
retry: {restart: 500ms}
workers: 4
page_rows: 200
`

// A migration is a table of events in PostgreSQL, an empty table in DynamoDB
// behind a proxy, Redis, and the program's pods.
type migration struct {
	t      *testing.T
	source *realtest.PostgresServer
	sink   *realtest.DynaliteServer
	proxy  *realtest.DynamoProxy // of the pods and commands
	redis  *realtest.RedisServer
	pool   *pgxpool.Pool
	dir    string
	env    []string
	rooms  []string
}

func newMigration(t *testing.T, plan string, rows, hours int) *migration {
	t.Helper()
	m := &migration{t: t, source: realtest.Postgres(t), sink: realtest.Dynalite(t), dir: t.TempDir()}
	m.proxy = realtest.NewDynamoProxy(t, m.sink.URL)
	m.redis = realtest.Redis(t, "appendonly yes", "appendfsync always")
	m.env = append(os.Environ(), "PG_DSN="+m.source.DSN, "DYNAMODB_ENDPOINT="+m.proxy.URL, "REDIS_URL="+m.redis.URL,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
	pool, err := pgxpool.New(t.Context(), m.source.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	m.pool = pool
	m.exec(`create table room_events (id text collate "C" primary key, room_id uuid not null, data json, version bigint not null)`)
	m.exec(migpg.OutboxDDL)
	for i := range 50 {
		m.rooms = append(m.rooms, roomID(i))
	}
	m.load(rows, hours)
	if err := os.WriteFile(filepath.Join(m.dir, "plan.yaml"), []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *migration) exec(sql string, args ...any) {
	m.t.Helper()
	if _, err := m.pool.Exec(m.t.Context(), sql, args...); err != nil {
		m.t.Fatal(err)
	}
}

func roomID(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }

// eventID returns a ULID in one of the given hours, which end a day ago.
func eventID(hour, hours int) string {
	at := time.Now().Add(-24 * time.Hour).Add(-time.Duration(hours-hour) * time.Hour)
	a := migrate.Axis{By: migrate.ByULID, Width: 1}
	return a.Bound(at.UnixMilli() + rand.Int64N(3_600_000))[0][:10] + fmt.Sprintf("%016d", rand.Uint64N(1e16))
}

// load fills the source by COPY.
func (m *migration) load(rows, hours int) {
	m.t.Helper()
	n := 0
	_, err := m.pool.CopyFrom(m.t.Context(), pgx.Identifier{"room_events"}, []string{"id", "room_id", "data", "version"},
		pgx.CopyFromFunc(func() ([]any, error) {
			if n++; n > rows {
				return nil, nil
			}
			data := fmt.Sprintf(`{"n": %d, "big": 9007199254740993, "text": "%s"}`, n, strings.Repeat("x", rand.IntN(400)))
			return []any{eventID(rand.IntN(hours), hours), m.rooms[rand.IntN(len(m.rooms))], data, int64(1)}, nil
		}))
	if err != nil {
		m.t.Fatal(err)
	}
}

// command returns `tallystick migrate ARGS -f plan.yaml`.
func (m *migration) command(args ...string) *exec.Cmd {
	m.t.Helper()
	path, err := binary()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command(path, append(append([]string{"migrate"}, args...), "-f", "plan.yaml")...)
	cmd.Dir, cmd.Env = m.dir, m.env
	realtest.DieWithTest(cmd)
	return cmd
}

// setEnv sets a variable of the pods and commands.
func (m *migration) setEnv(name, value string) { m.env = append(m.env, name+"="+value) } // the last one counts

// run runs a command and returns what it prints; the exit code has to be want.
func (m *migration) run(want int, args ...string) string {
	m.t.Helper()
	cmd := m.command(args...)
	limit := time.AfterFunc(10*time.Minute, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	defer limit.Stop()
	out, err := cmd.CombinedOutput()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	}
	if code != want {
		m.t.Errorf("migrate %v: exit %d, want %d (%v)\n%s", args, code, want, err, out)
	}
	return string(out)
}
