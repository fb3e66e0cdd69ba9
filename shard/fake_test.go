package shard_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/shard"
)

// A fake is a database that answers the fence and notes what else it is asked.
// Package shardsql has the real ones.
type fake struct {
	db *sql.DB

	mu         sync.Mutex
	epochs     map[int64]int64 // by shard; none: the shard is not here
	asked      []string
	committed  int
	rolledBack int
	answer     func(ctx context.Context, query string) error
}

// newFake returns a database that has all shards in epoch 1.
func newFake(t testing.TB) *fake {
	f := &fake{epochs: map[int64]int64{}}
	for s := range int64(shard.Count) {
		f.epochs[s] = 1
	}
	f.db = sql.OpenDB(f)
	t.Cleanup(func() { f.db.Close() })
	return f
}

func (f *fake) Fence() string          { return "fence" }
func (f *fake) Dialect() shard.Dialect { return shard.SQLite }

func (f *fake) Read(ctx context.Context, fn func(shard.Conn) error) error { return fn(f.db) }

func (f *fake) Write(ctx context.Context, fn func(shard.Conn) error) error {
	err := fn(f.db)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.rolledBack++
		return err
	}
	f.committed++
	return nil
}

// moveTo bumps the epoch of a shard here and there.
func (f *fake) moveTo(to *fake, s shard.Shard, epoch int64) {
	for _, db := range []*fake{f, to} {
		db.mu.Lock()
		db.epochs[int64(s)] = epoch
		db.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.epochs, int64(s))
}

// statements returns what it was asked beside the fence.
func (f *fake) statements() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// now is the fake's clock.
const now = 1764522000123

// The driver of a fake.

func (f *fake) Connect(context.Context) (driver.Conn, error) { return fakeConn{f}, nil }
func (f *fake) Driver() driver.Driver                        { return nil }

type fakeConn struct{ *fake }

func (fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not here") }
func (fakeConn) Begin() (driver.Tx, error)           { return nil, errors.New("not here") }
func (fakeConn) Close() error                        { return nil }

func (c fakeConn) ExecContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), c.ask(ctx, query)
}

func (c fakeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if query != "fence" {
		return &fakeRows{}, c.ask(ctx, query)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	epoch, here := c.epochs[args[0].Value.(int64)]
	if !here {
		return &fakeRows{}, nil
	}
	return &fakeRows{row: []driver.Value{epoch, int64(now)}}, nil
}

func (c fakeConn) ask(ctx context.Context, query string) error {
	c.mu.Lock()
	c.asked = append(c.asked, query)
	answer := c.answer
	c.mu.Unlock()
	if answer == nil {
		return nil
	}
	return answer(ctx, query)
}

type fakeRows struct{ row []driver.Value }

func (*fakeRows) Columns() []string { return []string{"epoch", "now"} }
func (*fakeRows) Close() error      { return nil }

func (r *fakeRows) Next(dest []driver.Value) error {
	if r.row == nil {
		return io.EOF
	}
	copy(dest, r.row)
	r.row = nil
	return nil
}
