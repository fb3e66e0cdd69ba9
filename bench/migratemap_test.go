package bench

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migdynamo"
	"github.com/tallystick/tallystick/migrate/migpg"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// A codecSink decodes and digests rows as DynamoDB's sink does, and discards
// them.
type codecSink struct {
	*migtest.Sink
	codec *migdynamo.Sink
}

func (s codecSink) Expect(r migrate.Row) (migrate.Stored, error) { return s.codec.Expect(r) }

func newCodecSink(t *testing.T, plan migrate.Plan) codecSink {
	t.Helper()
	codec, err := migdynamo.Open(t.Context(), plan, migdynamo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return codecSink{migtest.NewDiscard(), codec}
}

// decoding holds a run with JSON as maps against the same decoding alone.
func decoding(t *testing.T, r *results) {
	rows := 10_000
	if full {
		rows = 500_000
	}
	m := newEvents(t, eventsPlan, rows, spread)
	plan := m.parseFor(t, m.proxy.URL, dynamoSink+modeLines[migrate.Guarded]+"columns: {data: {encode: map}}\n")
	sink := newCodecSink(t, plan)
	sample := m.sample(t, plan, min(rows, 20_000))
	_, bytes := m.unload(t)
	var alone, ours, share []float64
	for range turns {
		a := inMemory(sample, rows, func(r migrate.Row) error { _, err := sink.Expect(r); return err }, t)
		o := m.engine(t, plan, sink, nil)
		alone, ours, share = append(alone, a.Seconds()), append(ours, o.Seconds()), append(share, a.Seconds()/o.Seconds())
	}
	std := inMemory(sample, rows, decodeStd, t).Seconds()
	mb := float64(bytes) / 1e6
	r.section("Migrations: JSON as maps", fmt.Sprintf("%d rows in 100 hours into a sink that makes DynamoDB items of them, digests and discards them; beside it the same function for rows in memory, on all %d cores, which ours shares with PostgreSQL and Redis. Medians of %d pairs. For comparison, encoding/json into `any`, numbers as text, without a digest.", rows, runtime.GOMAXPROCS(0), turns))
	r.table("case", "s", "MB/s", "share", "bar")
	r.row("in memory", median(alone), mb/median(alone), 1.0, "")
	r.row("from PostgreSQL", median(ours), mb/median(ours), median(share), "0.60")
	r.row("encoding/json, in memory", std, mb/std, median(alone)/std, "")
	r.atMost(t, "the rate in memory over ours", 1/median(share), 1/0.60)
}

// sample reads up to n rows as the engine hands them to a sink.
func (m *migration) sample(t *testing.T, plan migrate.Plan, n int) []migrate.Row {
	t.Helper()
	source, err := migpg.Open(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	page, err := source.Page(t.Context(), migrate.Range{}, nil, n, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range page.Rows {
		for i, f := range row.Fields {
			row.Fields[i].Map = f.Name == "data"
		}
	}
	return page.Rows
}

// inMemory returns how long decode takes for n rows, those of the sample again
// and again, on all cores.
func inMemory(sample []migrate.Row, n int, decode func(migrate.Row) error, t *testing.T) time.Duration {
	var next atomic.Int64
	var workers sync.WaitGroup
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			const some = 100 // rows at a time
			for from := next.Add(some) - some; from < int64(n); from = next.Add(some) - some {
				for i := range some {
					if err := decode(sample[(int(from)+i)%len(sample)]); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	workers.Wait()
	return time.Since(start)
}

// decodeStd decodes the row's JSON by the standard library.
func decodeStd(r migrate.Row) error {
	for _, f := range r.Fields {
		if f.Name == "data" {
			dec := json.NewDecoder(strings.NewReader(f.Value.Text))
			dec.UseNumber()
			var v any
			return dec.Decode(&v)
		}
	}
	return fmt.Errorf("row %s has no data", r.Key)
}
