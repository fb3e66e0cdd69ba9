package shardsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tallystick/tallystick/shard"
)

// A turn is one transaction's with the writer. Its function runs on the goroutine
// of its caller, so that a panic is the caller's and nothing of it is shared.
type turn struct {
	ctx   context.Context
	taken atomic.Bool  // by the writer, or by the caller who goes away
	floor chan *sql.Tx // from the writer: it is your turn
	done  chan error   // to the writer: how the function ended
	out   chan error   // from the writer: how the transaction ended
}

var errPanicked = errors.New("shardsql: the function did not return")

func newTurn(ctx context.Context) *turn {
	return &turn{ctx: ctx, floor: make(chan *sql.Tx, 1), done: make(chan error, 1), out: make(chan error, 1)}
}

// await returns the transaction to work in once it is the turn's.
func (t *turn) await() (*sql.Tx, error) {
	select {
	case tx := <-t.floor:
		return tx, nil
	case err := <-t.out:
		return nil, err
	case <-t.ctx.Done():
	}
	if t.taken.CompareAndSwap(false, true) {
		return nil, unavailable(context.Cause(t.ctx))
	}
	select {
	case tx := <-t.floor:
		return tx, nil
	case err := <-t.out:
		return nil, err
	}
}

// run runs fn and tells the writer, also when fn panics.
func (t *turn) run(tx *sql.Tx, fn func(shard.Conn) error) (err error) {
	l := &lane{tx: tx, ctx: t.ctx}
	err = errPanicked
	defer func() {
		l.over.Store(true)
		t.done <- err
	}()
	err = fn(l)
	return err
}

// refused returns how a function failed, once what it has seen is committed.
func (t *turn) refused(err error) error {
	if errors.Is(err, shard.ErrUnavailable) {
		return err
	}
	if out := t.outcome(); out != nil {
		return fmt.Errorf("%w: what it has read is not committed: %v", shard.ErrUnavailable, out)
	}
	return err
}

// outcome waits for the commit, or until the caller's time is over.
func (t *turn) outcome() error {
	select {
	case err := <-t.out:
		return err
	case <-t.ctx.Done():
	}
	select {
	case err := <-t.out:
		return err
	default:
		return fmt.Errorf("%w: %w", shard.ErrUnknown, context.Cause(t.ctx))
	}
}

// A lane is the connection of a turn while its function runs. Its statements are
// not interrupted.
type lane struct {
	tx   *sql.Tx
	ctx  context.Context // of the turn
	over atomic.Bool
}

// enter returns why a statement must not begin, or nil.
func (l *lane) enter(ctx context.Context) error {
	switch {
	case l.over.Load():
		return sql.ErrTxDone
	case ctx.Err() != nil:
		return unavailable(context.Cause(ctx))
	case l.ctx.Err() != nil:
		return unavailable(context.Cause(l.ctx))
	}
	return nil
}

func (l *lane) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	return l.tx.ExecContext(context.WithoutCancel(ctx), text, args...)
}

func (l *lane) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	return l.tx.QueryContext(context.WithoutCancel(ctx), text, args...)
}

func (l *lane) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if err := l.enter(ctx); err != nil {
		// Only database/sql can make a row that says why there is none.
		ended, end := context.WithCancelCause(ctx)
		end(err)
		return l.tx.QueryRowContext(ended, text, args...)
	}
	return l.tx.QueryRowContext(context.WithoutCancel(ctx), text, args...)
}
