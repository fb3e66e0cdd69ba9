package realtest_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/tallystick/tallystick/internal/realtest"
)

// count returns what a query for one number says.
func count(t *testing.T, dsn, query string) (n int) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMariaDBKeepsItsDataWhenKilled(t *testing.T) {
	s := realtest.MariaDB(t, "max-connections=77")
	if got := count(t, s.DSN("mysql"), "select @@max_connections"); got != 77 {
		t.Errorf("setting: %d, want 77", got)
	}
	s.CreateDatabase("kept")
	s.Kill()
	s.Start()
	if got := count(t, s.DSN("kept"), "select count(*) from information_schema.schemata where schema_name = 'kept'"); got != 1 {
		t.Errorf("%d databases, want 1", got)
	}
}

func TestMariaDBDSNIsEmptyEachTime(t *testing.T) {
	first, second := realtest.MariaDBDSN(t), realtest.MariaDBDSN(t)
	if first == second {
		t.Fatalf("twice %s", first)
	}
	if got := count(t, second, "select count(*) from information_schema.tables where table_schema = database()"); got != 0 {
		t.Errorf("%d tables, want 0", got)
	}
}
