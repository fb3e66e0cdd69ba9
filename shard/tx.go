package shard

import (
	"context"
	"database/sql"
	"time"
)

// A Reader reads from one shard. It is valid only within the function it is
// given to, and not safe for concurrent use.
type Reader struct {
	ctx     context.Context // of the call it is valid within
	conn    Conn
	shard   Shard
	dialect Dialect
	fence   *fence // of a write transaction
}

// Shard returns the shard.
func (r *Reader) Shard() Shard { return r.shard }

// Dialect returns the kind of SQL that the shard's database understands.
func (r *Reader) Dialect() Dialect { return r.dialect }

// Query runs a statement that returns rows. The caller closes them.
func (r *Reader) Query(s Statement, args ...any) (*sql.Rows, error) {
	if r.fence == nil || r.fence.passed() {
		return r.conn.QueryContext(r.ctx, s.On(r.shard), args...)
	}
	return r.fence.query(r, s.On(r.shard), args)
}

// QueryRow runs a statement that returns one row at most.
func (r *Reader) QueryRow(s Statement, args ...any) Row {
	rows, err := r.Query(s, args...)
	return Row{rows, err}
}

// A Row is the answer to [Reader.QueryRow].
type Row struct {
	rows *sql.Rows
	err  error
}

// Scan copies the columns of the row, as [sql.Row.Scan] does. Without a row it
// fails with [sql.ErrNoRows].
func (r Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	return r.rows.Close()
}

// A Tx is a write transaction on one shard. The fence comes before its first
// statement: who cannot pass it writes nothing. It is valid only within the
// function it is given to, and not safe for concurrent use.
type Tx struct {
	Reader
	unmatched bool
}

// Now is the database's clock when the fence was passed, to the millisecond, in
// UTC. Where the fence cannot be passed it is no time, and the transaction fails
// with the reason.
func (t *Tx) Now() time.Time {
	if t.fence.enter(&t.Reader) != nil {
		return time.Time{}
	}
	return t.fence.now
}

// Exec runs a statement and returns how many rows matched.
func (t *Tx) Exec(s Statement, args ...any) (int64, error) { return t.exec(ForAnswer, s, args) }

// Queue runs a statement that answers with an error or not at all, in its order.
// The database may let it wait for the next statement or for the commit and send
// them together: then it is these that fail with its error, and the transaction
// with them, whatever fn returns.
func (t *Tx) Queue(s Statement, args ...any) error {
	_, err := t.exec(ForNothing, s, args)
	return err
}

// Must is Queue for a statement that has to match a row: if it matches none the
// transaction fails with [ErrNoMatch].
func (t *Tx) Must(s Statement, args ...any) error {
	n, err := t.exec(ForMatch, s, args)
	if err == nil && n == 0 {
		t.unmatched = true
		return ErrNoMatch
	}
	return err
}

func (t *Tx) exec(w Wait, s Statement, args []any) (int64, error) {
	if err := t.fence.enter(&t.Reader); err != nil {
		return 0, err
	}
	ctx := t.ctx
	if w != ForAnswer {
		ctx = waiting(ctx, w)
	}
	result, err := t.conn.ExecContext(ctx, s.On(t.shard), args...)
	if err != nil || w == ForNothing {
		return 0, err
	}
	return result.RowsAffected()
}

// run runs fn. Nothing that passed over an error is committed, nor anything that
// has not passed the fence.
func (t *Tx) run(fn func(*Tx) error) error {
	err := fn(t)
	switch {
	case t.fence.err != nil:
		return t.fence.err
	case err == nil && t.unmatched:
		return ErrNoMatch
	case err == nil:
		return t.fence.enter(&t.Reader)
	}
	return err
}
