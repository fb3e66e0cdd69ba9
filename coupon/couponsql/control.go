package couponsql

import (
	"context"
	"database/sql"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// controlTimeout bounds a call of the control database, waiting for a connection
// included.
const controlTimeout = 3 * time.Second

// A Control is a [coupon.Control], [coupon.Workers] and the shard map, in the
// database beside the shards. It is safe for concurrent use.
type Control struct{ db shard.Database }

var (
	_ coupon.Control = (*Control)(nil)
	_ coupon.Workers = (*Control)(nil)
)

// NewControl makes a control of a database that [UpgradeControl] has brought up
// to date.
func NewControl(db shard.Database) *Control { return &Control{db} }

// read runs fn outside a transaction.
func (c *Control) read(ctx context.Context, fn func(session) error) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return c.db.Read(ctx, func(conn shard.Conn) error { return fn(session{ctx, conn, c.db.Dialect()}) })
}

// write runs fn in a transaction.
func (c *Control) write(ctx context.Context, fn func(session) error) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return c.db.Write(ctx, func(conn shard.Conn) error { return fn(session{ctx, conn, c.db.Dialect()}) })
}

// A session runs statements of one call.
type session struct {
	ctx     context.Context
	conn    shard.Conn
	dialect shard.Dialect
}

func (s session) row(query string, args ...any) *sql.Row {
	return s.conn.QueryRowContext(s.ctx, query, args...)
}

// exec returns how many rows matched.
func (s session) exec(query string, args ...any) (int64, error) {
	result, err := s.conn.ExecContext(s.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// now returns the database's time.
func (s session) now() (t time.Time, err error) {
	err = s.row(clock(s.dialect)).Scan(timeColumn{&t})
	return t, err
}

// listOf returns the rows of a query, each made by scan.
func listOf[T any](s session, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	result, err := s.conn.QueryContext(s.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return collect(result, scan)
}

// change runs a statement in a transaction of its own and reports whether it
// matched a row.
func (c *Control) change(ctx context.Context, query string, args ...any) (changed bool, err error) {
	err = c.write(ctx, func(s session) error {
		n, err := s.exec(query, args...)
		changed = n > 0
		return err
	})
	return changed, err
}
