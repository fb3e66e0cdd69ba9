package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/tallystick/tallystick/shard"
)

// BeginTx begins a transaction, all of which ctx bounds, its COMMIT included.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if !c.guard.implicit {
		if _, err := c.fullConn.BeginTx(ctx, o); err != nil {
			return nil, c.told(err)
		}
	}
	c.inTx, c.over = true, nil
	c.queue.drop()
	return &tx{c, ctx}, nil
}

// Begin begins a transaction without bounds.
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// A tx ends the transaction of its connection. The drivers' own would send
// COMMIT and ROLLBACK without a deadline.
type tx struct {
	conn *conn
	ctx  context.Context // of the transaction
}

func (t *tx) Commit() error {
	c := t.conn
	if c.over != nil {
		why := c.over
		t.Rollback()
		return why
	}
	if t.ctx.Err() != nil {
		t.Rollback()
		return unavailable(context.Cause(t.ctx))
	}
	c.inTx = false
	text, args, together := c.queue.with("COMMIT", nil)
	_, err := c.fullConn.ExecContext(t.ctx, text, args)
	switch {
	case err == nil:
		return nil
	case together && err == driver.ErrSkip: // nothing was sent
		t.Rollback()
		return errSkipped
	case together && c.guard.errors.refused(err): // the server came to no COMMIT
		t.Rollback()
		told, _ := c.guard.errors.tell(err)
		return told
	}
	c.broken = true
	return c.guard.errors.tellCommit(err)
}

// Rollback ends the transaction. Where its context has ended or its connection
// is lost it closes the connection, which has the same effect and does not wait
// for a server that may not answer.
func (t *tx) Rollback() error {
	c := t.conn
	c.inTx, c.over = false, nil
	c.queue.drop()
	if t.ctx.Err() == nil && c.fullConn.IsValid() {
		if _, err := c.fullConn.ExecContext(t.ctx, "ROLLBACK", nil); err == nil {
			return nil
		}
	}
	c.broken = true
	return driver.ErrBadConn
}

// outcome returns what a call ended with. What database/sql itself says about a
// context that ended, while it waited for a connection for example, has passed
// no guard.
func outcome(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || isTold(err) {
		return err
	}
	for _, end := range []error{context.DeadlineExceeded, context.Canceled, sql.ErrTxDone} {
		if errors.Is(err, end) {
			return unavailable(context.Cause(ctx))
		}
	}
	return err
}

func isTold(err error) bool {
	for _, told := range []error{shard.ErrUnavailable, shard.ErrUnknown, shard.ErrBusy, shard.ErrMoved, shard.ErrDuplicate, shard.ErrUnrouted} {
		if errors.Is(err, told) {
			return true
		}
	}
	return false
}

// A pool runs reads, each statement on a connection of its own choice.
type pool struct{ *sql.DB }

// read runs fn on the pool.
func (p pool) read(ctx context.Context, fn func(shard.Conn) error) error {
	return outcome(ctx, fn(p.DB))
}
