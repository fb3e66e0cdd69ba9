package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/rollout"
)

// An old is the table in PostgreSQL, as a rollout.OldSide.
type old struct{ pool *pgxpool.Pool }

// Names. The table's key has the columns of both sides' keys, so that a note of
// it is all that Drain needs.
const (
	table    = "example_events"
	sequence = "example_events_version"
)

// schema makes the table. Versions come from a sequence of the whole table, so
// that a row that is deleted and comes again goes on above its tombstone. The
// notes are in the migration's outbox (migpg.OutboxDDL).
const schema = `
	drop table if exists example_events; drop sequence if exists example_events_version;
	create sequence example_events_version;
	create table example_events (
		id text collate "C", room_id uuid, data json not null, version bigint not null,
		primary key (id, room_id));
	delete from tallystick_outbox where table_name = 'example_events'`

// change runs f and leaves a note, in one transaction. It takes the lock of the
// key first: without it an insert could draw its version before a deletion that
// commits before it.
func (o old) change(ctx context.Context, k key, t rollout.Terms, f func(pgx.Tx) (int64, error)) (n rollout.Note[key], err error) {
	n.Key = k
	err = pgx.BeginFunc(ctx, o.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1, 0))", k.String()); err != nil {
			return err
		}
		if n.Version, err = f(tx); err != nil || !t.Note {
			return err
		}
		return tx.QueryRow(ctx, "insert into tallystick_outbox (table_name, key, ref, version) values ($1, $2, $3, $4) returning id::text",
			table, k.String(), k.ref(), n.Version).Scan(&n.ID)
	})
	return n, err
}

// Put implements rollout.OldSide.
func (o old) Put(ctx context.Context, k key, data string, t rollout.Terms) (rollout.Note[key], error) {
	return o.change(ctx, k, t, func(tx pgx.Tx) (version int64, err error) {
		err = tx.QueryRow(ctx, `insert into example_events as e (id, room_id, data, version)
			values ($1, $2, $3::text::json, greatest(nextval($4::text::regclass), $5::int8 + 1))
			on conflict (id, room_id) do update set data = excluded.data, version = greatest(excluded.version, e.version + 1)
			returning version`, k.ID, k.Room, data, sequence, t.Above).Scan(&version)
		return version, err
	})
}

// Delete implements rollout.OldSide.
func (o old) Delete(ctx context.Context, k key, t rollout.Terms) (rollout.Note[key], error) {
	return o.change(ctx, k, t, func(tx pgx.Tx) (version int64, err error) {
		err = tx.QueryRow(ctx, `with gone as (delete from example_events where id = $1 and room_id = $2 returning version)
			select greatest(nextval($3::text::regclass), $4::int8 + 1, (select version + 1 from gone))`,
			k.ID, k.Room, sequence, t.Above).Scan(&version)
		return version, err
	})
}

// Get implements rollout.OldSide.
func (o old) Get(ctx context.Context, k key) (row rollout.Row[string], found bool, err error) {
	err = o.pool.QueryRow(ctx, "select data::text, version from example_events where id = $1 and room_id = $2",
		k.ID, k.Room).Scan(&row.Value, &row.Version)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, false, nil
	}
	return row, err == nil, err
}

// Pending implements rollout.OldSide.
func (o old) Pending(ctx context.Context, after string, limit int) ([]rollout.Note[key], error) {
	id, err := strconv.ParseInt("0"+after, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("note %q: %w", after, err)
	}
	rows, err := o.pool.Query(ctx, `select id::text, key, coalesce(version, 0) from tallystick_outbox
		where table_name = $1 and id > $2 order by id limit $3`, table, id, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (n rollout.Note[key], err error) {
		var text string
		if err := row.Scan(&n.ID, &text, &n.Version); err != nil {
			return n, err
		}
		n.Key, err = parseKey(text)
		return n, err
	})
}

// Forget implements rollout.OldSide.
func (o old) Forget(ctx context.Context, notes []rollout.Note[key]) error {
	ids := make([]string, len(notes))
	for i, n := range notes {
		ids[i] = n.ID
	}
	_, err := o.pool.Exec(ctx, "delete from tallystick_outbox where id = any($1::text[]::int8[])", ids)
	return err
}
