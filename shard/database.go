package shard

import (
	"context"
	"database/sql"
)

// A Database is a physical database. All methods are safe for concurrent use,
// end when ctx does, and tell [ErrUnavailable], [ErrBusy], [ErrDuplicate],
// [ErrMoved] (the table is gone) and [ErrUnknown] apart. Package shardsql has
// the implementations.
type Database interface {
	// Write runs fn in a transaction, which it commits if fn returns nil. The
	// transaction reads what is committed and sees its own writes. After a
	// deadlock it may run fn again. Once a statement met ErrBusy or
	// ErrUnavailable, none follows and nothing is committed, whatever fn returns.
	// Statements whose caller waits for nothing or for a match, see [WaitOf], may
	// be sent later; of [MariaDB] the first such one of a transaction, if a query
	// follows, has to answer before it, in the same rows.
	Write(ctx context.Context, fn func(Conn) error) error
	// Read runs fn outside a transaction. Its statements may run on several
	// connections.
	Read(ctx context.Context, fn func(Conn) error) error
	// Fence is the statement that locks a shard's row in shard_fence, shared, and
	// returns its epoch and the database's clock in ms since 1970. Its one
	// argument is the shard.
	Fence() string
	// Dialect tells which words of SQL it understands.
	Dialect() Dialect
}

// A Dialect is a kind of SQL.
type Dialect string

// The dialects.
const (
	MariaDB Dialect = "mariadb" // and MySQL
	SQLite  Dialect = "sqlite"
)

// A Conn runs statements.
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
