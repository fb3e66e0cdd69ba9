package couponsql_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard/shardsql"
)

// A kind makes empty databases of one kind.
type kind struct {
	name  string
	empty func(name string) couponsql.Source
	open  func(ctx context.Context, at string) (couponsql.Database, error)
	pid   int // of the server; 0: there is none
}

// sqlite makes files in a folder of the test.
func sqlite(t testing.TB) kind {
	dir := t.TempDir()
	return kind{
		name: "SQLite",
		empty: func(name string) couponsql.Source {
			return couponsql.Source{Name: name, At: filepath.Join(dir, name+".db")}
		},
		open: func(ctx context.Context, at string) (couponsql.Database, error) {
			return shardsql.OpenSQLite(ctx, at, shardsql.SQLiteOptions{})
		},
	}
}

// mariadb makes databases on a server of the test's own. Its tables share a file:
// 300 files take long to make.
func mariadb(t testing.TB, settings ...string) kind {
	server := realtest.MariaDB(t, append([]string{"innodb-file-per-table=0"}, settings...)...)
	return kind{
		name: "MariaDB",
		pid:  server.Pid(),
		empty: func(name string) couponsql.Source {
			return couponsql.Source{Name: name, At: server.CreateDatabase(name)}
		},
		open: func(ctx context.Context, at string) (couponsql.Database, error) {
			return shardsql.OpenMySQL(ctx, shardsql.MySQLOptions{DSN: at})
		},
	}
}

// options are those of an empty platform of n databases.
func (k kind) options(n int) couponsql.Options {
	o := couponsql.Options{Control: k.empty("control"), EnsureFence: shardsql.EnsureFence, Fenced: shardsql.Fenced, Open: k.open}
	for i := range n {
		o.Shards = append(o.Shards, k.empty(fmt.Sprintf("db%d", i)))
	}
	return o
}

// database opens an empty database that the test closes.
func (k kind) database(t testing.TB, name string) couponsql.Database {
	t.Helper()
	db, err := k.open(t.Context(), k.empty(name).At)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func open(t testing.TB, o couponsql.Options) *couponsql.Platform {
	t.Helper()
	p, err := couponsql.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestSQLite(t *testing.T) {
	k := sqlite(t)
	testKind(t, k, k.options(8))
}

func TestMariaDB(t *testing.T) {
	k := mariadb(t)
	o := k.options(8)
	testKind(t, k, o)
	t.Run("opened by several", func(t *testing.T) { testOpenedBySeveral(t, o) })
}

// testKind has all tests that need the tables of every shard, which take long to
// make.
func testKind(t *testing.T, k kind, o couponsql.Options) {
	t.Run("open", func(t *testing.T) { testOpenGoesOnWhereItDied(t, k, o) })
	t.Run("another database", func(t *testing.T) { testAnotherDatabase(t, k, o) })
	t.Run("another control database", func(t *testing.T) { testAnotherControl(t, k, o) })
	t.Run("unreleased schema", func(t *testing.T) { testUnreleasedSchema(t, o) })
	t.Run("newer schema", func(t *testing.T) { testNewerSchema(t, k, o) })
	p := open(t, o)
	t.Run("store", func(t *testing.T) {
		coupontest.TestStore(t, func(*testing.T) coupon.Store { return p.Store })
	})
	t.Run("control", func(t *testing.T) {
		coupontest.TestControl(t, func(*testing.T) coupon.Control { return p.Control })
	})
	t.Run("outbox", func(t *testing.T) { testOutbox(t, p) })
	t.Run("rows of a wallet page", func(t *testing.T) { testWalletRows(t, p, o) })
	n := 0
	empty := func(t *testing.T) *couponsql.Control {
		n++
		db := k.database(t, fmt.Sprintf("control%d", n))
		if err := couponsql.UpgradeControl(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		return couponsql.NewControl(db)
	}
	t.Run("workers", func(t *testing.T) {
		coupontest.TestWorkers(t, func(t *testing.T) coupon.Workers { return empty(t) })
	})
	t.Run("shard map", func(t *testing.T) { testMap(t, empty(t)) })
}
