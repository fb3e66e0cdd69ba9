package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migdynamo"
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
	proxy  *realtest.DynamoProxy
	redis  *realtest.RedisServer
	pool   *pgxpool.Pool
	dir    string
	env    []string
	rooms  []string
}

func newMigration(t *testing.T, plan string, rows, hours int) *migration {
	t.Helper()
	m := &migration{t: t, source: realtest.Postgres(t), dir: t.TempDir()}
	m.proxy = realtest.NewDynamoProxy(t, realtest.Dynalite(t).URL)
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
		m.rooms = append(m.rooms, fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
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

// run runs a command and returns what it prints; the exit code has to be want.
func (m *migration) run(want int, args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).CombinedOutput()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	}
	if code != want {
		m.t.Errorf("migrate %v: exit %d, want %d (%v)\n%s", args, code, want, err, out)
	}
	return string(out)
}

// A pod is a running `migrate run`.
type pod struct {
	cmd *exec.Cmd
	log *os.File
}

func (m *migration) pod(args ...string) pod {
	m.t.Helper()
	cmd := m.command(append([]string{"run"}, args...)...)
	log, err := os.CreateTemp(m.dir, "pod-")
	if err != nil {
		m.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	return pod{cmd, log}
}

// wait returns when the pod has ended by itself.
func (p pod) wait(t *testing.T, limit time.Duration) {
	t.Helper()
	timer := time.AfterFunc(limit, func() { p.cmd.Process.Signal(syscall.SIGQUIT) })
	defer timer.Stop()
	if err := p.cmd.Wait(); err != nil {
		b, _ := os.ReadFile(p.log.Name())
		t.Errorf("pod: %v\n%s", err, b[max(0, len(b)-4000):])
	}
}

// same compares both tables by a program that shares nothing with the engine.
func (m *migration) same() int {
	m.t.Helper()
	items := m.items()
	rows, err := m.pool.Query(m.t.Context(), "select id, room_id::text, data::text, version from room_events")
	if err != nil {
		m.t.Fatal(err)
	}
	defer rows.Close()
	n, wrong := 0, 0
	for rows.Next() {
		var id, room, data string
		var version int64
		if err := rows.Scan(&id, &room, &data, &version); err != nil {
			m.t.Fatal(err)
		}
		want := fmt.Sprintf("%s|%s|%s|%d", id, room, data, version)
		if got := items[id]; got != want {
			if wrong++; wrong < 5 {
				m.t.Errorf("row %s: the sink has %q, want %q", id, got, want)
			}
		}
		delete(items, id)
		n++
	}
	if len(items) > 0 || wrong > 0 {
		m.t.Errorf("%d items of the sink have no row, %d rows are not as in the source", len(items), wrong)
	}
	return n
}

func (m *migration) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &m.proxy.URL,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")})
}

// items returns every item that is no tombstone, by id.
func (m *migration) items() map[string]string {
	m.t.Helper()
	items := map[string]string{}
	pages := dynamodb.NewScanPaginator(m.client(), &dynamodb.ScanInput{TableName: aws.String("room_events"), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(m.t.Context())
		if err != nil {
			m.t.Fatal(err)
		}
		for _, it := range page.Items {
			if _, dead := it["_deleted"]; dead {
				continue
			}
			text := func(name string) string {
				switch v := it[name].(type) {
				case *types.AttributeValueMemberS:
					return v.Value
				case *types.AttributeValueMemberN:
					return v.Value
				}
				return ""
			}
			items[text("id")] = fmt.Sprintf("%s|%s|%s|%s", text("id"), text("room_id"), text("data"), text("version"))
		}
	}
	return items
}

// A doubleWriter is the application: it changes rows and writes both sides.
type doubleWriter struct {
	m      *migration
	source *migpg.Source
	writer migrate.Writer
	items  *dynamodb.Client
	ids    []string
	writes int
}

func (m *migration) doubleWriter(planText string) *doubleWriter {
	m.t.Helper()
	env := map[string]string{"PG_DSN": m.source.DSN, "DYNAMODB_ENDPOINT": m.proxy.URL, "REDIS_URL": m.redis.URL}
	plan, err := migrate.ParsePlan([]byte(planText), func(n string) (string, bool) { v, ok := env[n]; return v, ok })
	if err != nil {
		m.t.Fatal(err)
	}
	source, err := migpg.Open(m.t.Context(), plan)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { source.Close() })
	sink, err := migdynamo.Open(m.t.Context(), plan, migdynamo.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	rows, err := m.pool.Query(m.t.Context(), "select id from room_events")
	if err != nil {
		m.t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		m.t.Fatal(err)
	}
	return &doubleWriter{m: m, source: source, writer: sink.Writer(), items: m.client(), ids: ids}
}

// change inserts, updates or deletes one row, and dies between its two writes
// now and then: the note in the outbox stays then. Servers may be down: it
// gives up and goes on.
func (d *doubleWriter) change(ctx context.Context) error {
	tx, err := d.m.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	id, room, version, note := d.ids[rand.IntN(len(d.ids))], d.m.rooms[0], int64(0), int64(0)
	data, kind := fmt.Sprintf(`{"change": %d}`, rand.Int()), rand.IntN(5)
	switch kind {
	case 0:
		id = eventID(rand.IntN(50), 50)
		_, err = tx.Exec(ctx, "insert into room_events values ($1, $2, $3, 1)", id, room, data)
	case 1:
		err = tx.QueryRow(ctx, "delete from room_events where id = $1 returning room_id::text, version", id).Scan(&room, &version)
	default:
		err = tx.QueryRow(ctx, "update room_events set version = version + 1, data = $2 where id = $1 returning room_id::text", id, data).Scan(&room)
	}
	if err != nil {
		return err
	}
	err = tx.QueryRow(ctx, "insert into tallystick_outbox (table_name, key, ref) values ('room_events', $1, $2) returning id",
		migrate.Key{id}.String(), migrate.Key{room, id}.String()).Scan(&note)
	if err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	d.writes++
	if rand.IntN(20) == 0 {
		return nil // killed here
	}
	if kind == 1 {
		err = d.bury(ctx, room, id, version+1)
	} else {
		err = d.copy(ctx, id)
	}
	if err != nil {
		return err
	}
	_, err = d.m.pool.Exec(ctx, "delete from tallystick_outbox where id = $1", note)
	return err
}

// copy writes the row as it is now into the sink.
func (d *doubleWriter) copy(ctx context.Context, id string) error {
	rows, err := d.source.Get(ctx, []migrate.Key{{id}}, false)
	if err != nil || len(rows) == 0 {
		return err
	}
	results, err := d.writer.Write(ctx, rows)
	if err == nil && results[0].Outcome == migrate.Unknown {
		err = migrate.ErrTransient
	}
	return err
}

// bury writes a tombstone, where there is nothing too.
func (d *doubleWriter) bury(ctx context.Context, room, id string, version int64) error {
	_, err := d.items.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("room_events"),
		Item: map[string]types.AttributeValue{
			"room_id": &types.AttributeValueMemberS{Value: room}, "id": &types.AttributeValueMemberS{Value: id},
			"_version": &types.AttributeValueMemberN{Value: fmt.Sprint(version)}, "_deleted": &types.AttributeValueMemberBOOL{Value: true},
		},
		ConditionExpression:       aws.String("attribute_not_exists(id) OR #v < :v"),
		ExpressionAttributeNames:  map[string]string{"#v": "_version"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: fmt.Sprint(version)}},
	})
	if _, lost := errors.AsType[*types.ConditionalCheckFailedException](err); lost {
		return nil
	}
	return err
}

// run changes rows until ctx ends.
func (d *doubleWriter) run(ctx context.Context) {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		d.change(call)
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestFaultMigration copies a table with three pods while the pods are killed
// and paused, PostgreSQL and Redis restarted, the sink throttles, loses replies
// and does half of batches, and an application changes rows on both sides the
// whole time. Then every row is the same on both sides.
func TestFaultMigration(t *testing.T) {
	rows, rounds, every := 4_000, 4, 1500*time.Millisecond
	if full {
		rows, rounds, every = 150_000, 20, 4*time.Second
	}
	m := newMigration(t, eventsPlan, rows, 50)
	m.run(0, "plan")
	d := m.doubleWriter(eventsPlan)
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() { d.run(ctx) })
	m.proxy.Inject(sinkFaults)
	pods := []pod{m.pod("--start"), m.pod(), m.pod()}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for round := range rounds {
		<-tick.C
		i := rand.IntN(len(pods))
		pods[i].cmd.Process.Kill()
		pods[i].cmd.Wait()
		pods[i] = m.pod()
		other := pods[(i+1)%len(pods)].cmd.Process
		switch round % 4 {
		case 0: // beyond its locks' time to live
			other.Signal(syscall.SIGSTOP)
			time.AfterFunc(4*time.Second, func() { other.Signal(syscall.SIGCONT) })
		case 1:
			m.source.Kill()
			m.source.Start()
		case 2:
			m.redis.Kill()
			m.redis.Start()
		case 3:
			m.run(0, "stop", "--wait", "60s")
			m.run(0, "start")
		}
	}
	stop()
	writing.Wait()
	m.proxy.Inject(nil)
	for _, p := range pods {
		p.wait(t, 5*time.Minute)
	}
	out := m.run(0, "verify", "--mode", "full", "-o", "json")
	n := m.same()
	var status struct {
		Status string
		Rows   map[string]int64
	}
	if err := json.Unmarshal([]byte(m.run(0, "status", "-o", "json")), &status); err != nil || status.Status != "FINISHED" {
		t.Errorf("status %+v, %v", status, err)
	}
	t.Logf("%d rows, %d changes meanwhile, %d kills, %v; verdict %s", n, d.writes, rounds, status.Rows, strings.TrimSpace(out))
}

// sinkFaults throttles, loses and delays some of the sink's requests.
func sinkFaults(r realtest.DynamoRequest) realtest.Fault {
	switch p := rand.IntN(200); {
	case p < 2:
		return realtest.Fault{Action: realtest.LoseReply}
	case p < 4:
		return realtest.Fault{Action: realtest.ThrottleOnDemand}
	case p < 5:
		return realtest.Fault{Action: realtest.ServerErrorAfterWrite}
	case p < 8:
		return realtest.Fault{After: time.Duration(rand.IntN(50)) * time.Millisecond}
	}
	return realtest.Fault{}
}
