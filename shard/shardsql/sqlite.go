package shardsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"

	"github.com/tallystick/tallystick/shard"
)

// SQLiteOptions say how to use a file.
type SQLiteOptions struct {
	// Readers is how many reads run at a time. Default 4.
	Readers int
	// Group is how many transactions one commit may carry. Default 64.
	Group int
}

// SQLite is a database in one file of this process. It is safe for concurrent
// use.
//
// One goroutine writes. It takes the transactions that wait, up to Group, and
// commits them together: one wait for the disk for all of them. Each runs within
// a savepoint, so that one that fails takes nothing of the others with it. While
// a function runs, all other writes of the file wait, so it must be short.
type SQLite struct {
	reads  pool
	writes *writer
}

var _ shard.Database = (*SQLite)(nil)

// OpenSQLite opens the file, which it makes if there is none; its folder has to
// be there. Pinned are write-ahead logging, synchronous=FULL, no foreign keys and
// 1 s of waiting for another process that writes.
//
// With synchronous=FULL each commit is on the disk, by fsync, before the caller
// hears of it: neither the end of the process nor of the machine loses it, if the
// disk does what fsync asks. The file's folder is synced when it is opened, so
// that a new file is found again.
func OpenSQLite(ctx context.Context, path string, o SQLiteOptions) (*SQLite, error) {
	s, err := openSQLite(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, outcome(ctx, err))
	}
	return s, nil
}

func openSQLite(ctx context.Context, path string, o SQLiteOptions) (*SQLite, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	writes, err := sqlitePool(path, 1, "synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	reads, err := sqlitePool(path, cmpOr(o.Readers, 4), "query_only(1)")
	if err != nil {
		return nil, errors.Join(err, writes.Close())
	}
	if err := errors.Join(checkDurable(ctx, writes), syncFolder(filepath.Dir(path))); err != nil {
		return nil, errors.Join(err, reads.Close(), writes.Close())
	}
	return &SQLite{pool{reads}, newWriter(writes, cmpOr(o.Group, 64))}, nil
}

// sqlitePool opens the file for n connections.
func sqlitePool(path string, n int, pragma string) (*sql.DB, error) {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"_pragma": {"busy_timeout(1000)", "journal_mode(WAL)", "foreign_keys(0)", pragma},
		"_txlock": {"immediate"},
	}.Encode()}
	connector, err := sqlite.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(&guard{Connector: connector, errors: sqliteErrors{}, timeout: 10 * time.Second})
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// checkDurable reports whether the file is written as it should be. Not every
// file system can.
func checkDurable(ctx context.Context, db *sql.DB) error {
	var journal string
	var synchronous int
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&journal); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous); err != nil {
		return err
	}
	if journal != "wal" || synchronous != 2 {
		return fmt.Errorf("shardsql: the file's journal mode is %s and synchronous %d (want wal and 2: is it on a local disk?)", journal, synchronous)
	}
	return nil
}

// syncFolder makes the names of new files outlast the machine.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Close waits for the transactions under way and closes the file. Those that wait
// get [shard.ErrUnavailable].
func (s *SQLite) Close() error { return errors.Join(s.writes.close(), s.reads.Close()) }

// Dialect returns [shard.SQLite].
func (s *SQLite) Dialect() shard.Dialect { return shard.SQLite }

// Read runs fn on the pool, on what is committed. It cannot write.
func (s *SQLite) Read(ctx context.Context, fn func(shard.Conn) error) error {
	return s.reads.read(ctx, fn)
}

// Write runs fn in a transaction, on the goroutine of its caller.
//
// SQLite undoes a whole transaction when a statement of it is interrupted, here
// that of others too. So a statement that has begun is finished whatever ctx
// does, and one that has not is refused once ctx has ended. A caller whose ctx
// ends while it waits for its turn gets [shard.ErrUnavailable]; one whose ctx
// ends after fn returned nil and before the commit is through gets
// [shard.ErrUnknown]. If fn panics, its writes are undone and the panic goes on.
func (s *SQLite) Write(ctx context.Context, fn func(shard.Conn) error) error {
	return outcome(ctx, s.writes.do(ctx, fn))
}
