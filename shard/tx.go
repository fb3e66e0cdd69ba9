package shard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// A Reader reads from one shard. It is valid only within the function it is
// given to, and not safe for concurrent use.
type Reader struct {
	ctx     context.Context // of the call it is valid within
	conn    Conn
	shard   Shard
	dialect Dialect
}

// Shard returns the shard.
func (r *Reader) Shard() Shard { return r.shard }

// Dialect returns the kind of SQL that the shard's database understands.
func (r *Reader) Dialect() Dialect { return r.dialect }

// Query runs a statement that returns rows. The caller closes them.
func (r *Reader) Query(s Statement, args ...any) (*sql.Rows, error) {
	return r.conn.QueryContext(r.ctx, s.On(r.shard), args...)
}

// QueryRow runs a statement that returns one row at most.
func (r *Reader) QueryRow(s Statement, args ...any) *sql.Row {
	return r.conn.QueryRowContext(r.ctx, s.On(r.shard), args...)
}

// A Tx is a write transaction on one shard that holds the fence. It is valid
// only within the function it is given to, and not safe for concurrent use.
type Tx struct {
	Reader
	now time.Time
}

// Now is the database's clock at the begin of the transaction, to the
// millisecond, in UTC.
func (t *Tx) Now() time.Time { return t.now }

// Exec runs a statement and returns how many rows matched.
func (t *Tx) Exec(s Statement, args ...any) (int64, error) {
	result, err := t.conn.ExecContext(t.ctx, s.On(t.shard), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Queue runs a statement that answers with an error or not at all, in its order.
// The database may let it wait for the next statement or for the commit and send
// them together: then it is these that fail with its error, and the transaction
// with them, whatever fn returns.
func (t *Tx) Queue(s Statement, args ...any) error {
	_, err := t.conn.ExecContext(queued(t.ctx), s.On(t.shard), args...)
	return err
}

// enter locks the fence and compares its epoch with the map's.
func (t *Tx) enter(fence string, epoch uint64) error {
	var there uint64
	var now int64
	err := t.conn.QueryRowContext(t.ctx, fence, t.shard).Scan(&there, &now)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("shard %d: %w", t.shard, ErrMoved)
	}
	if err != nil {
		return err
	}
	if there != epoch {
		return fmt.Errorf("shard %d: %w: epoch %d there, %d in the map", t.shard, ErrMoved, there, epoch)
	}
	t.now = time.UnixMilli(now).UTC()
	return nil
}
