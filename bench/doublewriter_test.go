package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migdynamo"
	"github.com/tallystick/tallystick/migrate/migpg"
)

// writerEnv makes the test binary an application that double-writes, by the
// plan it holds.
const writerEnv = "TALLYSTICK_BENCH_WRITER"

// writerCallers is how many changes a double-writer has under way at a time.
const writerCallers = 4

// writerMain is the main of a double-writer, which ends only when it is killed.
// It says when it has begun.
func writerMain() int {
	ctx := context.Background()
	w, err := openDoubleWriter(ctx)
	for attempt := 0; err != nil && attempt < 60; attempt++ { // the database may be starting
		time.Sleep(time.Second)
		w, err = openDoubleWriter(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "double-writer:", err)
		return 1
	}
	fmt.Println("ready")
	var callers sync.WaitGroup
	for range writerCallers {
		callers.Go(func() { w.clone().run(ctx) })
	}
	callers.Wait()
	return 0
}

// A doubleWriter is the application: it changes rows and writes both sides.
type doubleWriter struct {
	pool   *pgxpool.Pool
	source *migpg.Source
	writer migrate.Writer
	items  *dynamodb.Client
	ids    []string
}

// openDoubleWriter opens what the environment names. The oldest row stays as
// it is: tests use it to hold a migration up.
func openDoubleWriter(ctx context.Context) (*doubleWriter, error) {
	plan, err := migrate.ParsePlan([]byte(os.Getenv(writerEnv)), os.LookupEnv)
	if err != nil {
		return nil, err
	}
	source, err := migpg.Open(ctx, plan)
	if err != nil {
		return nil, err
	}
	sink, err := migdynamo.Open(ctx, plan, migdynamo.Options{})
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	pool, err := pgxpool.New(ctx, plan.Source.DSN)
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	w := &doubleWriter{pool: pool, source: source, writer: sink.Writer(), items: newItems(plan.Sink.Endpoint)}
	rows, err := pool.Query(ctx, "select id from room_events order by id offset 1")
	if err == nil {
		w.ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	return w, err
}

// clone returns a double-writer that knows the same rows.
func (w *doubleWriter) clone() *doubleWriter {
	c := *w
	c.ids = slices.Clone(w.ids)
	return &c
}

// run changes rows for ever. Servers may be down: it gives a change up, whose
// note stays in the outbox, and goes on with another.
func (w *doubleWriter) run(ctx context.Context) {
	for {
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		_ = w.change(call)
		cancel()
		time.Sleep(10 * time.Millisecond)
	}
}

// change inserts, updates or deletes one row. A note in the outbox is committed
// with it and removed when the other side is written, too.
func (w *doubleWriter) change(ctx context.Context) error {
	id, room, version := w.ids[rand.IntN(len(w.ids))], roomID(0), int64(0)
	data, kind, note := fmt.Sprintf(`{"change": %d}`, rand.Int()), rand.IntN(5), int64(0)
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) (err error) {
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
		return tx.QueryRow(ctx, "insert into tallystick_outbox (table_name, key, ref) values ('room_events', $1, $2) returning id",
			migrate.Key{id}.String(), migrate.Key{room, id}.String()).Scan(&note)
	})
	switch {
	case err != nil:
		return err
	case kind == 1:
		err = w.bury(ctx, room, id, version+1)
	default:
		w.ids = append(w.ids, id)
		err = w.copy(ctx, id)
	}
	if err != nil {
		return err
	}
	_, err = w.pool.Exec(ctx, "delete from tallystick_outbox where id = $1", note)
	return err
}

// copy writes the row as it is now into the sink.
func (w *doubleWriter) copy(ctx context.Context, id string) error {
	rows, err := w.source.Get(ctx, []migrate.Key{{id}}, false)
	if err != nil || len(rows) == 0 {
		return err
	}
	results, err := w.writer.Write(ctx, rows)
	if err == nil && results[0].Outcome == migrate.Unknown {
		err = migrate.ErrTransient
	}
	return err
}

// bury writes a tombstone, where there is nothing too.
func (w *doubleWriter) bury(ctx context.Context, room, id string, version int64) error {
	_, err := w.items.PutItem(ctx, &dynamodb.PutItemInput{
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
