package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tallystick/tallystick/shard"
)

// MySQLOptions say how to open a database of a MySQL or MariaDB server.
type MySQLOptions struct {
	// DSN is user:password@tcp(host:port)/database?parameters as in
	// github.com/go-sql-driver/mysql. What the package pins wins over it.
	DSN string
	// MaxConns is how many connections there are at most for writes, and for
	// reads. Default 32.
	MaxConns int
	// ConnectTimeout bounds the making of a connection, its handshake
	// included. Default 2 s.
	ConnectTimeout time.Duration
	// ConnLife is how long a connection is used. Default 10 min.
	ConnLife time.Duration
	// IdleTx is after how long MariaDB ends a transaction that does nothing,
	// whose process was stopped for example: its locks hold up a mover and
	// others. Whole seconds; MySQL has no such setting. Default 10 s.
	IdleTx time.Duration
}

// MySQL is a database of a MySQL or MariaDB server. It is safe for concurrent
// use.
type MySQL struct {
	reads  pool
	writes pool // whose sessions begin a transaction with the first statement: BEGIN would be a round trip
}

var _ shard.Database = (*MySQL)(nil)

// OpenMySQL connects to the server. Pinned for each connection, whatever the DSN
// says, are READ COMMITTED, the time zone +00:00, strict SQL, utf8mb4 compared
// byte for byte, rows matched (not changed) as the count of an UPDATE, 1 s of
// waiting for a row or a table, and arguments that the driver writes into the text
// where it can (interpolateParams: one round trip instead of three). A
// DSN with multiStatements is refused: a caller's text is one statement, only
// those that wait in a transaction's queue are sent together. No error contains
// the DSN.
func OpenMySQL(ctx context.Context, o MySQLOptions) (*MySQL, error) {
	reads, err := o.open(ctx, false)
	if err != nil {
		return nil, err
	}
	writes, err := o.open(ctx, true)
	if err != nil {
		return nil, errors.Join(err, reads.Close())
	}
	return &MySQL{reads, writes}, nil
}

// open connects, for reads or for writes.
func (o MySQLOptions) open(ctx context.Context, writes bool) (pool, error) {
	connector, err := o.connector(writes)
	if err != nil {
		return pool{}, err
	}
	db := sql.OpenDB(connector)
	maxConns := cmpOr(o.MaxConns, 32)
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	db.SetConnMaxLifetime(cmpOr(o.ConnLife, 10*time.Minute))
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return pool{}, fmt.Errorf("open %s: %w", connector.Connector.(*prepared).where, outcome(ctx, err))
	}
	return pool{db}, nil
}

// Close closes all connections. Transactions under way fail.
func (m *MySQL) Close() error { return errors.Join(m.reads.Close(), m.writes.Close()) }

// Dialect returns [shard.MariaDB].
func (m *MySQL) Dialect() shard.Dialect { return shard.MariaDB }

// Read runs fn on the pool: two statements may run on two connections.
func (m *MySQL) Read(ctx context.Context, fn func(shard.Conn) error) error {
	return m.reads.read(ctx, fn)
}

// How often a transaction is tried that the server ended for another's sake, and
// how long it waits before the next try, so that the two do not meet again.
const (
	deadlockTries = 3
	deadlockPause = 5 * time.Millisecond
)

// Write runs fn in a transaction and commits it. After a deadlock, which leaves
// nothing written, it does so again, three times in all.
func (m *MySQL) Write(ctx context.Context, fn func(shard.Conn) error) error {
	for try := 1; ; try++ {
		err := outcome(ctx, m.write(ctx, fn))
		if !isDeadlock(err) || try == deadlockTries {
			return err
		}
		select {
		case <-time.After(rand.N(deadlockPause)):
		case <-ctx.Done():
			return err
		}
	}
}

func (m *MySQL) write(ctx context.Context, fn func(shard.Conn) error) error {
	tx, err := m.writes.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// connector returns the guarded way to connect.
func (o MySQLOptions) connector(writes bool) (*guard, error) {
	cfg, err := mysql.ParseDSN(o.DSN)
	if err != nil { // it may quote the password
		return nil, errors.New("shardsql: the DSN cannot be read (want user:password@tcp(host:port)/database)")
	}
	if cfg.MultiStatements {
		return nil, errors.New("shardsql: the DSN sets multiStatements: a text has to be one statement (remove it)")
	}
	connect := cmpOr(o.ConnectTimeout, 2*time.Second)
	if err := pin(cfg, connect, cmpOr(o.IdleTx, 10*time.Second), writes); err != nil {
		return nil, err
	}
	inner, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, errors.New("shardsql: the DSN's parameters do not fit together")
	}
	where := fmt.Sprintf("database %s at %s", cfg.DBName, cfg.Addr)
	return &guard{Connector: &prepared{inner, where}, errors: mysqlErrors{}, timeout: connect, implicit: writes, together: writes}, nil
}

// pin sets what the package relies on.
func pin(cfg *mysql.Config, connect, idleTx time.Duration, writes bool) error {
	cfg.InterpolateParams = true
	cfg.MultiStatements = writes // for the guard, which admits one at a time
	cfg.ClientFoundRows = true
	cfg.RejectReadOnly = true
	cfg.CheckConnLiveness = true
	cfg.ParseTime = true
	cfg.Loc = time.UTC
	cfg.Timeout = connect
	cfg.Logger = &mysql.NopLogger{}
	// Calls have deadlines of their own. These end what would never.
	cfg.ReadTimeout = cmpOr(cfg.ReadTimeout, time.Minute)
	cfg.WriteTimeout = cmpOr(cfg.WriteTimeout, 10*time.Second)
	params := maps.Clone(cfg.Params)
	if params == nil {
		params = map[string]string{}
	}
	maps.Copy(params, map[string]string{
		"autocommit":               strconv.FormatBool(!writes),
		"time_zone":                "'+00:00'",
		"sql_mode":                 "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION'",
		"innodb_lock_wait_timeout": "1", // s, for a row
		"lock_wait_timeout":        "1", // s, for a table that is being altered or renamed
		// In a comment that only MariaDB reads.
		"unique_checks": fmt.Sprintf("1 /*M!100300 , idle_transaction_timeout = %d */", max(1, int(idleTx.Seconds()))),
	})
	cfg.Params = params
	return cfg.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin"))
}

// prepared connects and sets what no parameter of the driver can.
type prepared struct {
	driver.Connector
	where string // for errors
}

func (p *prepared) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.(driver.ExecerContext).ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil)
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// cmpOr is cmp.Or where nothing below zero makes sense either.
func cmpOr[T int | time.Duration](value, byDefault T) T {
	if value > 0 {
		return value
	}
	return byDefault
}
