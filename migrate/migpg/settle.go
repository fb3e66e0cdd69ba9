package migpg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/migrate"
)

// Settled implements [migrate.Settler]. The token is a transaction number taken
// for it: every transaction that has written by now has a smaller one. One that
// is open and has written nothing yet is not known to anybody; slots.lag is
// for those. (The xmax of a snapshot would not do: it is one beyond the last
// transaction that ended, and those open may lie above it.) It fails on a
// replica, which has no such numbers.
func (s *Source) Settled(ctx context.Context) (string, error) {
	var token string
	err := s.pool.QueryRow(ctx, "select pg_current_xact_id()::text").Scan(&token)
	if onReplica(err) {
		return "", replica("open transactions cannot be awaited on a replica")
	}
	return token, failed("take transaction number", err)
}

// How often to look whether transactions have ended.
const (
	firstLook = 10 * time.Millisecond
	laterLook = time.Second
)

// Await implements [migrate.Settler]. Transactions that are prepared for a
// two-phase commit count as open.
func (s *Source) Await(ctx context.Context, token string) error {
	if _, err := strconv.ParseUint(token, 10, 64); err != nil {
		return fmt.Errorf("migpg: token %q is none", token)
	}
	for wait := firstLook; ; wait = min(2*wait, laterLook) {
		var settled bool
		err := s.pool.QueryRow(ctx, "select pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8", token).Scan(&settled)
		if err != nil || settled {
			return failed("await transactions", err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return s.stillOpen(ctx, token)
		}
	}
}

// stillOpen returns the error for a transaction that did not end in time, with
// its process if that can be seen.
func (s *Source) stillOpen(ctx context.Context, token string) error {
	cause := context.Cause(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	var who string
	err := s.pool.QueryRow(ctx, `select format('process %s of %s, since %s', pid, usename, xact_start) from pg_stat_activity
		where backend_xid is not null order by age(backend_xid) desc limit 1`).Scan(&who)
	if err != nil {
		who = "one that cannot be seen"
	}
	return failed("await transactions older than "+token+", like "+who, cause)
}

// Lag implements [migrate.Gauge]: how far the replica that is furthest behind has
// to replay, as it last reported. Without the right to see other sessions (role
// pg_monitor) and without replicas it is 0.
func (s *Source) Lag(ctx context.Context) (time.Duration, error) {
	var seconds float64
	err := s.pool.QueryRow(ctx, `select coalesce(extract(epoch from max(replay_lag)), 0)::float8 from pg_stat_replication`).Scan(&seconds)
	return time.Duration(seconds * float64(time.Second)), failed("read lag", err)
}

// OutboxDDL makes the table into which the double-writer puts a key, as
// [migrate.Key.String] writes it, in the transaction that changes the row, and
// from which it removes it after the sink was written. ref is how the sink names
// the item ([migrate.Stored.Ref]) and version that of the change: with both a
// deletion that was left is mended, so that no put that comes late undoes it.
// An older table gets what it lacks; without it, too, notes are dealt with as
// far as they tell.
const OutboxDDL = `create table if not exists tallystick_outbox (
	id         bigint generated always as identity primary key,
	table_name text not null,
	key        text not null,
	ref        text,
	version    bigint,
	created_at timestamptz not null default now()
);
alter table tallystick_outbox add column if not exists version bigint`

// Newest implements [migrate.Outbox].
func (s *Source) Newest(ctx context.Context) (id int64, none bool, err error) {
	err = s.pool.QueryRow(ctx, "select coalesce(max(id), 0)::int8 from tallystick_outbox where table_name = any($1)", s.tableNames()).Scan(&id)
	if sqlState(err, "42P01") {
		return 0, true, nil
	}
	return id, false, failed("read outbox", err)
}

// Pending implements [migrate.Outbox].
func (s *Source) Pending(ctx context.Context, limit int) (left []migrate.Left, none bool, err error) {
	rows, err := s.pool.Query(ctx, `select id::int8, key::text, coalesce(to_jsonb(o)->>'ref', ''), coalesce(to_jsonb(o)->>'version', '0')
		from tallystick_outbox o where table_name = any($1) order by id limit $2`, s.tableNames(), limit)
	if err == nil {
		left, err = pgx.CollectRows(rows, readNote)
	}
	if sqlState(err, "42P01") {
		return nil, true, nil
	}
	return left, false, failed("read outbox", err)
}

// readNote reads a note. One whose key is none keeps no other from being read;
// a version that is no integer says nothing.
func readNote(row pgx.CollectableRow) (l migrate.Left, err error) {
	var key *string
	var version string
	if err := row.Scan(&l.ID, &key, &l.Ref, &version); err != nil {
		return l, err
	}
	if l.Version, err = strconv.ParseInt(version, 10, 64); err != nil {
		l.Version = 0
	}
	if key == nil {
		l.Key, l.Flaw = migrate.Key{""}, "it is null"
		return l, nil
	}
	if l.Key, err = migrate.ParseKey(*key); err != nil {
		l.Key, l.Flaw = migrate.Key{*key}, errors.Unwrap(err).Error()
	}
	return l, nil
}

// tableNames returns what the double-writer may call the table: its name alone,
// too, unless that means another one.
func (s *Source) tableNames() []string {
	names := []string{s.plan.Source.Table, s.schema.schema + "." + s.schema.table}
	if s.schema.bare {
		names = append(names, s.schema.table)
	}
	return names
}

// Clear implements [migrate.Outbox].
func (s *Source) Clear(ctx context.Context, left []migrate.Left) error {
	ids := make([]int64, len(left))
	for i, l := range left {
		ids[i] = l.ID
	}
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "delete from tallystick_outbox where id = any($1::int8[])", ids)
		return err
	})
	if onReplica(err) {
		return replica("the outbox cannot be cleared on a replica")
	}
	return failed("clear outbox", err)
}

// onReplica reports whether err is that of a statement or a transaction that
// only a primary may run.
func onReplica(err error) bool {
	return sqlState(err, "25006") || sqlState(err, "0A000") && !forgottenPlan(err)
}

func replica(what string) error {
	return migrate.Finding{Severity: migrate.Refusal, Field: "source.dsn", Message: what, Remedy: "name the primary"}
}
