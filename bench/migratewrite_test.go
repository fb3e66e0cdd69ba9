package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migdynamo"
)

// dynamoSink is the sink of a plan that writes into a table of its own.
const dynamoSink = `sink: {kind: dynamodb, table: room_events, region: us-east-1, endpoint: "${DYNAMODB_ENDPOINT}", key: {partition: room_id, sort: id}, create: true}
`

// modeLines is what a plan says of a mode.
var modeLines = map[migrate.Mode]string{
	migrate.Guarded:   "write: {mode: guarded, version: version}\n",
	migrate.Absent:    "write: {mode: absent, deletes: none}\n",
	migrate.Overwrite: "write: {mode: overwrite, deletes: none}\n",
}

// A writeBench measures writing in one mode, each time into an empty server.
type writeBench struct {
	*migration
	mode migrate.Mode
	rows int
}

// writing holds the engine against what the sink takes from prepared requests
// at the most, and beside it a loop that does one thing after the other.
func writing(t *testing.T, r *results, mode migrate.Mode) {
	rows := 1_000
	if full {
		rows = map[migrate.Mode]int{migrate.Guarded: 200_000, migrate.Absent: 50_000, migrate.Overwrite: 1_000_000}[mode]
	}
	b := writeBench{newEvents(t, eventsPlan, rows, spread), mode, rows}
	connections := b.bestConnections(t)
	var bare, ours, share []float64
	for i := range turns {
		pair := []func(){
			func() { bare = append(bare, b.bare(t, connections, rows)) },
			func() { ours = append(ours, b.ours(t)) },
		}
		if i%2 == 1 {
			slices.Reverse(pair)
		}
		for _, measure := range pair {
			measure()
		}
		share = append(share, ours[i]/bare[i])
	}
	naive := b.naive(t, rows/10)
	r.section(fmt.Sprintf("Migrations: %s writes", mode), fmt.Sprintf("%d rows from PostgreSQL into an empty table of dynalite, its files on disk; one pod of 8 workers in this process, state in Redis, sweep off. The sink's ceiling: %s of the same items over bare HTTP, bodies prepared, on %d connections, the best of 1, 2 and 4. Medians of %d pairs, in turn. The naive loop, for %d rows: pages of 1,000 after the last id, then one request after the other by the SDK.", rows, requestOf[mode], connections, turns, rows/10))
	r.table("case", "rows/s", "share of the ceiling", "bar")
	r.row("the sink's ceiling", median(bare), 1.0, "")
	r.row("ours, PostgreSQL to dynalite", median(ours), median(share), "0.80")
	r.row("naive loop", naive, naive/median(bare), "")
	r.atMost(t, string(mode)+": the ceiling over ours", 1/median(share), 1/0.80)
}

// requestOf names what a mode sends.
var requestOf = map[migrate.Mode]string{
	migrate.Guarded: "PutItem on condition of the version", migrate.Absent: "PutItem on condition of absence",
	migrate.Overwrite: "BatchWriteItem of 25",
}

// table returns an empty server with the table in it, the plan that writes
// there, and its sink.
func (b writeBench) table(t *testing.T) (*realtest.DynaliteServer, migrate.Plan, *migdynamo.Sink) {
	t.Helper()
	runtime.GC() // of the measurement before
	server := realtest.LargeDynalite(t)
	plan := b.parseFor(t, server.URL, dynamoSink+modeLines[b.mode])
	sink, err := migdynamo.Open(t.Context(), plan, migdynamo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return server, plan, sink
}

// ours returns the engine's rows a second.
func (b writeBench) ours(t *testing.T) float64 {
	t.Helper()
	server, plan, sink := b.table(t)
	defer server.Kill()
	return float64(b.rows) / b.engine(t, plan, sink, nil).Seconds()
}

// bestConnections returns how many connections the server is fastest with.
func (b writeBench) bestConnections(t *testing.T) int {
	t.Helper()
	best, most := 0, 0.0
	for _, n := range []int{1, 2, 4} {
		if rate := b.bare(t, n, b.rows/20); rate > most {
			best, most = n, rate
		}
	}
	return best
}

// bare returns the rows a second of prepared requests.
func (b writeBench) bare(t *testing.T, connections, rows int) float64 {
	t.Helper()
	server, _, _ := b.table(t)
	defer server.Kill()
	bodies := b.bodies(t, rows)
	start := time.Now()
	sendBare(t, server.URL, operationOf(b.mode), connections, bodies)
	return float64(rows) / time.Since(start).Seconds()
}

func operationOf(m migrate.Mode) string {
	if m == migrate.Overwrite {
		return "BatchWriteItem"
	}
	return "PutItem"
}

// bodies returns the requests for the newest rows.
func (b writeBench) bodies(t *testing.T, n int) [][]byte {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), "select id, room_id::text, data::text, version from room_events order by id desc limit $1", n)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var items, bodies [][]byte
	for rows.Next() {
		var e event
		if err := rows.Scan(&e.id, &e.room, &e.data, &e.version); err != nil {
			t.Fatal(err)
		}
		if b.mode != migrate.Overwrite {
			bodies = append(bodies, e.putBody(b.mode))
			continue
		}
		if items = append(items, e.item(b.mode)); len(items) == 25 {
			bodies, items = append(bodies, batchBody(items)), nil
		}
	}
	if len(items) > 0 {
		bodies = append(bodies, batchBody(items))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return bodies
}

// An event is a row of the source.
type event struct {
	id, room, data string
	version        int64
}

// item returns the row as the engine stores it, in DynamoDB's JSON.
func (e event) item(m migrate.Mode) []byte {
	data, _ := json.Marshal(e.data)
	own := ""
	if m == migrate.Guarded {
		own = fmt.Sprintf(`,"_version":{"N":"%d"}`, e.version)
	}
	return fmt.Appendf(nil, `{"id":{"S":"%s"},"room_id":{"S":"%s"},"data":{"S":%s},"version":{"N":"%d"}%s}`, e.id, e.room, data, e.version, own)
}

// conditionOf returns the condition of a put and whether it has the version.
func conditionOf(m migrate.Mode) (condition string, versioned bool) {
	if m == migrate.Absent {
		return "attribute_not_exists(#p)", false
	}
	return "attribute_not_exists(#p) OR (#v < :v)", true
}

func (e event) putBody(m migrate.Mode) []byte {
	condition, versioned := conditionOf(m)
	names, values := `"#p":"room_id"`, ""
	if versioned {
		names += `,"#v":"_version"`
		values = fmt.Sprintf(`,"ExpressionAttributeValues":{":v":{"N":"%d"}}`, e.version)
	}
	return fmt.Appendf(nil, `{"TableName":"room_events","Item":%s,"ConditionExpression":"%s","ExpressionAttributeNames":{%s}%s,"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`,
		e.item(m), condition, names, values)
}

func batchBody(items [][]byte) []byte {
	b := []byte(`{"RequestItems":{"room_events":[`)
	for i, it := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"PutRequest":{"Item":`...), it...), "}}"...)
	}
	return append(b, "]}}"...)
}

// naive returns the rows a second of a loop over pages by one goroutine.
func (b writeBench) naive(t *testing.T, rows int) float64 {
	t.Helper()
	server, _, _ := b.table(t)
	defer server.Kill()
	loop := naiveLoop{pool: b.pool, client: clientOf(server.URL), mode: b.mode}
	start := time.Now()
	n, err := loop.run(context.WithoutCancel(t.Context()), rows)
	if err != nil {
		t.Fatal(err)
	}
	return float64(n) / time.Since(start).Seconds()
}

// TestSameItems checks that what is compared does the same: prepared requests,
// the engine and the naive loop leave the same table.
func TestSameItems(t *testing.T) {
	m := newMigration(t, eventsPlan, 130, 5)
	for mode := range modeLines {
		t.Run(string(mode), func(t *testing.T) {
			b := writeBench{m, mode, 130}
			engine, plan, sink := b.table(t)
			b.engine(t, plan, sink, nil)
			bare, _, _ := b.table(t)
			sendBare(t, bare.URL, operationOf(mode), 2, b.bodies(t, 130))
			naive, _, _ := b.table(t)
			if _, err := (naiveLoop{b.pool, clientOf(naive.URL), mode}).run(t.Context(), 130); err != nil {
				t.Fatal(err)
			}
			want := digests(t, engine.URL)
			if len(want) != 130 {
				t.Errorf("the engine left %d items, want 130", len(want))
			}
			for name, url := range map[string]string{"prepared requests": bare.URL, "the naive loop": naive.URL} {
				if got := digests(t, url); !maps.Equal(got, want) {
					t.Errorf("%s left %d items, not the %d of the engine", name, len(got), len(want))
				}
			}
		})
	}
}

// digests returns all that is in the table, by id.
func digests(t *testing.T, url string) map[string]string {
	t.Helper()
	all := map[string]string{}
	pages := dynamodb.NewScanPaginator(clientOf(url), &dynamodb.ScanInput{TableName: aws.String("room_events"), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range page.Items {
			version, _ := json.Marshal(it["_version"])
			all[it["id"].(*types.AttributeValueMemberS).Value] = string(migdynamo.Canonical(it)) + string(version)
		}
	}
	return all
}
