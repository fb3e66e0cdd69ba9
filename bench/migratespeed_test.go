package bench

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migpg"
	"github.com/tallystick/tallystick/migrate/migredis"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// parse reads the plan of m with some lines added, in this process.
func (m *migration) parse(t testing.TB, more string) migrate.Plan {
	t.Helper()
	env := map[string]string{"PG_DSN": m.source.DSN, "DYNAMODB_ENDPOINT": m.proxy.URL, "REDIS_URL": m.redis.URL}
	plan, err := migrate.ParsePlan([]byte(`name: room_events
source: {kind: postgres, dsn: "${PG_DSN}", table: room_events, key: [id]}
sink: {kind: discard}
write: {mode: guarded, version: version}
state: {kind: redis, url: "${REDIS_URL}", keeper_interval: 100ms}
`+more), func(n string) (string, bool) { v, ok := env[n]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// counting counts the looks at the index.
type counting struct {
	*migpg.Source
	probes atomic.Int64
}

func (c *counting) Nearest(ctx context.Context, r migrate.Range) (migrate.Key, bool, error) {
	c.probes.Add(1)
	return c.Source.Nearest(ctx, r)
}

// engine runs one pod in this process until it is finished, and returns how
// long that took and how many looks at the index it cost.
func (m *migration) engine(t testing.TB, plan migrate.Plan, sink migrate.Sink) (time.Duration, int64) {
	t.Helper()
	source, err := migpg.Open(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	state, err := migredis.Open(t.Context(), plan, plan.Axis())
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	counted := &counting{Source: source}
	pod := migrate.New(plan, counted, sink, state, migrate.Options{})
	if _, err := pod.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := pod.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	if err := state.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	return took, counted.probes.Load()
}

// unload returns how long a bare COPY TO STDOUT of the same columns takes, and
// its bytes.
func (m *migration) unload(t testing.TB) (time.Duration, int64) {
	t.Helper()
	conn, err := m.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	n := new(counter)
	start := time.Now()
	if _, err := conn.Conn().PgConn().CopyTo(t.Context(), n, "copy room_events to stdout"); err != nil {
		t.Fatal(err)
	}
	return time.Since(start), int64(*n)
}

type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

var _ io.Writer = (*counter)(nil)

// migrations measures the engine where the sink costs nothing, or a fixed time.
func migrations(t *testing.T, r *results) {
	rows, slow := 20_000, 4_000
	if full {
		rows, slow = 1_000_000, 40_000
	}
	m := newMigration(t, eventsPlan, rows, 100)
	r.section("Migrations: into a sink that discards", fmt.Sprintf("%d rows in 100 hours, one pod of 8 workers in this process, state in Redis, sweep off; beside it a bare COPY of the same rows. Includes start and finish of the run.", rows))
	r.table("case", "s", "MB/s", "share of COPY", "bar")
	m.unload(t) // warms the cache
	copied, bytes := m.unload(t)
	took, _ := m.engine(t, m.parse(t, "slots: {sweep: 0s}\n"), migtest.NewDiscard())
	rate := func(d time.Duration) float64 { return float64(bytes) / 1e6 / d.Seconds() }
	r.row("COPY TO STDOUT", copied.Seconds(), rate(copied), 1.0, "")
	r.row("JSON as text", took.Seconds(), rate(took), rate(took)/rate(copied), "0.30")
	r.atMost(t, "COPY's rate over ours", rate(copied)/rate(took), 1/0.30)
	scaling(t, r, slow)
	emptyYears(t, r)
}

// scaling measures workers against a sink that takes 20 ms for each request.
func scaling(t *testing.T, r *results, rows int) {
	m := newMigration(t, eventsPlan, rows, 100)
	took := func(workers int) float64 {
		sink := migtest.NewDiscard()
		sink.Latency = 20 * time.Millisecond
		d, _ := m.engine(t, m.parse(t, fmt.Sprintf("slots: {sweep: 0s}\nworkers: %d\npage_rows: 200\n", workers)), sink)
		return d.Seconds()
	}
	one, eight := took(1), took(8)
	r.section("Migrations: workers", fmt.Sprintf("%d rows into a discarding sink that takes 20 ms for a request of 25, one request under way per worker.", rows))
	r.table("workers", "s", "times one", "bar")
	r.row(1, one, 1.0, "")
	r.row(8, eight, one/eight, "6")
	r.atMost(t, "one worker's speed over eight's", 6*eight/one, 1)
}

// emptyYears walks 200,000 hours of which one in a hundred has a row.
func emptyYears(t *testing.T, r *results) {
	hours := 20_000
	if full {
		hours = 200_000
	}
	m := newMigration(t, eventsPlan, 0, 1)
	for h := 0; h < hours; h += 100 {
		m.exec("insert into room_events values ($1, $2, '{}', 1)", eventID(h, hours), m.rooms[0])
	}
	client := redis.NewClient(&redis.Options{Addr: m.redis.Addr})
	defer client.Close()
	ctx, stop := context.WithCancel(t.Context())
	most := make(chan int64)
	go func() {
		var n int64
		for ctx.Err() == nil {
			size, err := client.DBSize(ctx).Result()
			if err == nil {
				n = max(n, size)
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
		most <- n
	}()
	took, probes := m.engine(t, m.parse(t, "slots: {sweep: 0s}\n"), migtest.NewDiscard())
	stop()
	keys := <-most
	each := float64(probes) / float64(hours/100)
	r.section("Migrations: empty years", fmt.Sprintf("%d hours, one row in every hundredth.", hours))
	r.table("figure", "measured", "bar")
	r.row("seconds", took.Seconds(), "60")
	r.row("looks at the index per hour with a row", each, "2")
	r.row("most Redis keys at any time", keys, "1,000")
	r.atMost(t, "seconds", took.Seconds(), 60)
	r.atMost(t, "looks at the index", each, 2)
	r.atMost(t, "Redis keys", float64(keys), 1000)
}
