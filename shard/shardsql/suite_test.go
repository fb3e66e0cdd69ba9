package shardsql_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard"
	"github.com/tallystick/tallystick/shard/shardsql"
	"github.com/tallystick/tallystick/shard/shardtest"
)

func TestMariaDBIsADatabase(t *testing.T) {
	shardtest.TestDatabase(t, func(t testing.TB) shardtest.Subject {
		dsn := realtest.MariaDBDSN(t)
		fenced(t, openMySQL(t, dsn))
		addr := address(dsn)
		net := realtest.NewProxy(t, addr)
		return shardtest.Subject{
			Open:    func(t testing.TB) shard.Database { return openMySQL(t, dsn) },
			Through: func(t testing.TB) shard.Database { return openMySQL(t, strings.Replace(dsn, addr, net.Addr, 1)) },
			Net:     net,
		}
	})
}

func TestSQLiteIsADatabase(t *testing.T) {
	shardtest.TestDatabase(t, func(t testing.TB) shardtest.Subject {
		path := filepath.Join(t.TempDir(), "shards.db")
		fenced(t, openSQLite(t, path))
		return shardtest.Subject{Open: func(t testing.TB) shard.Database { return openSQLite(t, path) }}
	})
}

// address returns the host:port of a DSN.
func address(dsn string) string {
	_, rest, _ := strings.Cut(dsn, "tcp(")
	addr, _, _ := strings.Cut(rest, ")")
	return addr
}

func openMySQL(t testing.TB, dsn string) *shardsql.MySQL {
	t.Helper()
	return openMySQLWith(t, shardsql.MySQLOptions{DSN: dsn})
}

func openMySQLWith(t testing.TB, o shardsql.MySQLOptions) *shardsql.MySQL {
	t.Helper()
	db, err := shardsql.OpenMySQL(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func openSQLite(t testing.TB, path string) *shardsql.SQLite {
	t.Helper()
	db, err := shardsql.OpenSQLite(t.Context(), path, shardsql.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// fenced makes the fences of all shards, in epoch 1, and returns the database.
func fenced(t testing.TB, db shard.Database) shard.Database {
	t.Helper()
	for _, s := range shard.All() {
		if err := shardsql.EnsureFence(t.Context(), db, s, 1); err != nil {
			t.Fatal(err)
		}
	}
	return db
}
