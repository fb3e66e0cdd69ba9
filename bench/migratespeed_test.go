package bench

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migpg"
	"github.com/tallystick/tallystick/migrate/migredis"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// discard is the sink of a plan that keeps nothing, and how it writes.
const discard = "sink: {kind: discard}\nwrite: {mode: guarded, version: version}\n"

// parse reads a plan of m that discards, with some lines added, in this
// process.
func (m *migration) parse(t testing.TB, more string) migrate.Plan {
	t.Helper()
	return m.parseFor(t, m.proxy.URL, discard+more)
}

// parseFor reads a plan of m with a DynamoDB at url and some lines added.
func (m *migration) parseFor(t testing.TB, url, more string) migrate.Plan {
	t.Helper()
	env := map[string]string{"PG_DSN": m.source.DSN, "DYNAMODB_ENDPOINT": url, "REDIS_URL": m.redis.URL}
	plan, err := migrate.ParsePlan([]byte(`name: room_events
source: {kind: postgres, dsn: "${PG_DSN}", table: room_events, key: [id]}
state: {kind: redis, url: "${REDIS_URL}", keeper_interval: 100ms}
slots: {sweep: 0s}
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
// long that took. wrap, unless nil, has the last word on what the source does.
func (m *migration) engine(t testing.TB, plan migrate.Plan, sink migrate.Sink, wrap func(*migpg.Source) migrate.Source) time.Duration {
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
	from := migrate.Source(source)
	if wrap != nil {
		from = wrap(source)
	}
	pod := migrate.New(plan, from, sink, state, migrate.Options{})
	if _, err := pod.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the command does, which has its memory for itself
	start := time.Now()
	if err := pod.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	m.allWritten(t, state)
	if err := state.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	return took
}

// allWritten holds the engine's counts against the table.
func (m *migration) allWritten(t testing.TB, state migrate.State) {
	t.Helper()
	v, err := state.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var rows int64
	if err := m.pool.QueryRow(t.Context(), "select count(*) from room_events").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if v.Counts.Written != rows {
		t.Errorf("of %d rows, %d were written: %+v", rows, v.Counts.Written, v.Counts)
	}
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

// migrations measures the engine against what its source and its sink take at
// the most, and where the sink costs nothing or a fixed time.
func migrations(t *testing.T, r *results) {
	r.part(t, "discard", discarding)
	r.part(t, "map", decoding)
	for _, mode := range []migrate.Mode{migrate.Guarded, migrate.Absent, migrate.Overwrite} {
		r.part(t, string(mode), func(t *testing.T, r *results) { writing(t, r, mode) })
	}
	r.part(t, "workers", scaling)
	r.part(t, "hot", hotHour)
	r.part(t, "years", emptyYears)
	r.part(t, "memory", peakMemory)
}

const turns = 3 // of ours and what it is compared with, in turn

// discarding holds reading alone against COPY.
func discarding(t *testing.T, r *results) {
	rows := 20_000
	if full {
		rows = 1_000_000
	}
	m := newEvents(t, eventsPlan, rows, spread)
	plan := m.parseFor(t, m.proxy.URL, dynamoSink+modeLines[migrate.Guarded])
	sink := newCodecSink(t, plan)
	_, bytes := m.unload(t) // warms the cache
	var copied, took, share []float64
	for range turns {
		c, _ := m.unload(t)
		d := m.engine(t, plan, sink, nil)
		copied, took, share = append(copied, c.Seconds()), append(took, d.Seconds()), append(share, c.Seconds()/d.Seconds())
	}
	mb := float64(bytes) / 1e6
	r.section("Migrations: into a sink that discards", fmt.Sprintf("%d rows in 100 hours, one pod of 8 workers in this process, state in Redis, sweep off, into a sink that makes DynamoDB items of them, digests and discards them; beside it a bare COPY of the same rows. Includes start and finish of the run. Medians of %d pairs.", rows, turns))
	r.table("case", "s", "MB/s", "share of COPY", "bar")
	r.row("COPY TO STDOUT", median(copied), mb/median(copied), 1.0, "")
	r.row("JSON as text", median(took), mb/median(took), median(share), "0.30")
	r.atMost(t, "COPY's rate over ours", 1/median(share), 1/0.30)
}

// scaling measures workers against a sink that takes 20 ms for each request.
func scaling(t *testing.T, r *results) {
	rows := 4_000
	if full {
		rows = 40_000
	}
	m := newEvents(t, eventsPlan, rows, spread)
	took := func(workers int) float64 {
		return m.engine(t, m.parse(t, fmt.Sprintf("workers: %d\npage_rows: 200\n", workers)), slowSink(), nil).Seconds()
	}
	one, eight := took(1), took(8)
	r.section("Migrations: workers", fmt.Sprintf("%d rows into a discarding sink that takes 20 ms for a request of 25, one request under way per worker.", rows))
	r.table("workers", "s", "times one", "bar")
	r.row(1, one, 1.0, "")
	r.row(8, eight, one/eight, "6")
	r.atMost(t, "one worker's speed over eight's", 6*eight/one, 1)
}

// slowSink discards, and takes 20 ms for each request of 25 rows.
func slowSink() *migtest.Sink {
	s := migtest.NewDiscard()
	s.Latency = 20 * time.Millisecond
	return s
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
	var counted *counting
	took := m.engine(t, m.parse(t, ""), migtest.NewDiscard(), func(s *migpg.Source) migrate.Source {
		counted = &counting{Source: s}
		return counted
	})
	probes := counted.probes.Load()
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
