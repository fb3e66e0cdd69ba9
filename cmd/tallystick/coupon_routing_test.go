package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/shard"
)

// couponPlaces are empty databases, as a server is told of them.
func couponPlaces(t *testing.T) map[string]couponDatabases {
	files, err := embeddedCoupons(filepath.Join(t.TempDir(), "coupons"))
	if err != nil {
		t.Fatal(err)
	}
	files.Shards = files.Shards[:2]
	mariadb := couponDatabases{Control: realtest.MariaDBDSN(t)}
	for i := range 2 {
		mariadb.Shards = append(mariadb.Shards, couponDatabase{fmt.Sprintf("db%d", i), realtest.MariaDBDSN(t)})
	}
	return map[string]couponDatabases{"SQLite": files, "MariaDB": mariadb}
}

// TestServersDatabasesRefuseWhatIsNotRouted asks the databases that a server has
// open, with their tables there, the control database among them.
func TestServersDatabasesRefuseWhatIsNotRouted(t *testing.T) {
	t.Parallel()
	for name, where := range couponPlaces(t) {
		t.Run(name, func(t *testing.T) {
			stores, err := openCouponStores(t.Context(), where, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer stores.Close()
			places := []string{where.Control}
			for _, s := range where.Shards {
				places = append(places, s.DSN)
			}
			for _, at := range places {
				db, err := couponOpener(where, slog.New(slog.DiscardHandler))(t.Context(), at)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				for _, text := range []string{
					"SELECT id FROM coupon_07", "UPDATE coupon_07 SET status = 2", "DELETE FROM user_coupon_31",
					"INSERT INTO coupon_00 (id) VALUES (1)",
				} {
					unroutedIn(t, db, text)
				}
			}
			othersIn(t, stores.Shards)
		})
	}
}

// unroutedIn expects a statement to be refused, read or written.
func unroutedIn(t *testing.T, db couponsql.Database, text string) {
	t.Helper()
	run := func(c shard.Conn) error {
		_, err := c.ExecContext(t.Context(), text)
		if query := c.QueryRowContext(t.Context(), text).Err(); !errors.Is(query, shard.ErrUnrouted) {
			return fmt.Errorf("as a query: %w", query)
		}
		return err
	}
	if err := db.Read(t.Context(), run); !errors.Is(err, shard.ErrUnrouted) {
		t.Errorf("%s: %v", text, err)
	}
	if err := db.Write(t.Context(), run); !errors.Is(err, shard.ErrUnrouted) {
		t.Errorf("%s, in a transaction: %v", text, err)
	}
}

// othersIn expects every shard to refuse another's table, in a transaction too,
// and to read its own.
func othersIn(t *testing.T, cluster *shard.Cluster) {
	t.Helper()
	own := shard.SQL("SELECT COUNT(*) FROM coupon_#")
	for _, s := range shard.All() {
		other := shard.SQL(fmt.Sprintf("UPDATE coupon_%02d SET status = 2 -- #", (s+4)%shard.Count))
		err := cluster.Write(t.Context(), s, func(tx *shard.Tx) error {
			_, err := tx.Exec(other)
			return err
		})
		if !errors.Is(err, shard.ErrUnrouted) {
			t.Errorf("shard %d changes another's table: %v", s, err)
		}
		var n int
		if err := cluster.Read(t.Context(), s, func(r *shard.Reader) error { return r.QueryRow(own).Scan(&n) }); err != nil {
			t.Errorf("shard %d does not read its own table: %v", s, err)
		}
	}
}

// An unguarded database does whatever it is asked, or says what it says.
type unguarded struct {
	closableDatabase
	says error
}

func (u unguarded) Read(_ context.Context, fn func(shard.Conn) error) error { return fn(u) }
func (u unguarded) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, u.says
}
func (unguarded) ExecContext(context.Context, string, ...any) (sql.Result, error) { return nil, nil }
func (unguarded) QueryRowContext(context.Context, string, ...any) *sql.Row        { return nil }
func (unguarded) Close() error                                                    { return errors.New("closed") }

// TestServerDoesNotServeFromDatabasesWithoutGuard opens one whose driver passes
// every statement on.
func TestServerDoesNotServeFromDatabasesWithoutGuard(t *testing.T) {
	open := routedOnly(func(context.Context, string) (unguarded, error) {
		return unguarded{says: errors.New("no such table: coupon_07")}, nil
	})
	db, err := open(t.Context(), "x")
	if err == nil || db.says != nil || !strings.Contains(err.Error(), "a statement without a shard key was not refused") || !strings.Contains(err.Error(), "closed") {
		t.Errorf("opened %+v, %v", db, err)
	}
	away := routedOnly(func(context.Context, string) (unguarded, error) { return unguarded{says: shard.ErrUnavailable}, nil })
	if _, err := away(t.Context(), "x"); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("a database that is away is %v", err)
	}
}
