package couponsql_test

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/shard"
)

var errDied = errors.New("died here")

// A dying database fails with errDied once left statements have run that write.
type dying struct {
	couponsql.Database
	left *atomic.Int64
}

func (d dying) Write(ctx context.Context, fn func(shard.Conn) error) error {
	return d.Database.Write(ctx, func(c shard.Conn) error { return fn(dyingConn{c, d.left}) })
}

type dyingConn struct {
	shard.Conn
	left *atomic.Int64
}

func (c dyingConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if c.left.Add(-1) < 0 {
		return nil, errDied
	}
	return c.Conn.ExecContext(ctx, query, args...)
}

// testOpenGoesOnWhereItDied makes the first start die again and again.
func testOpenGoesOnWhereItDied(t *testing.T, k kind, o couponsql.Options) {
	left := new(atomic.Int64)
	dies := o
	dies.Open = func(ctx context.Context, at string) (couponsql.Database, error) {
		db, err := k.open(ctx, at)
		return dying{db, left}, err
	}
	for died := 0; ; died++ {
		left.Store(200) // about 80 of them before the first table
		p, err := couponsql.Open(t.Context(), dies)
		if err == nil {
			p.Close()
			if died < 2 {
				t.Errorf("it died %d times: want a test of several", died)
			}
			break
		}
		if !errors.Is(err, errDied) || died > 20 {
			t.Fatal(err)
		}
	}
	p := open(t, o)
	for _, at := range shard.All() {
		err := p.Store.Write(t.Context(), at, func(tx coupon.Tx) error {
			_, _, err := tx.Advance(1, 1)
			return err
		})
		if err != nil {
			t.Errorf("shard %d: %v", at, err)
		}
	}
}

// testOpenedBySeveral has some processes make the tables that are missing at the
// same time.
func testOpenedBySeveral(t *testing.T, o couponsql.Options) {
	p := open(t, o)
	for _, s := range shard.All() {
		drop := shard.SQL("DROP TABLE ledger_#, pool_#")
		forget := shard.SQL("DELETE FROM shard_schema WHERE shard = #")
		err := p.Cluster.Write(t.Context(), s, func(tx *shard.Tx) error {
			_, err := tx.Exec(drop)
			_, err2 := tx.Exec(forget)
			return errors.Join(err, err2)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	errs := make(chan error, 3)
	for range cap(errs) {
		go func() {
			p, err := couponsql.Open(t.Context(), o)
			if err == nil {
				err = p.Close()
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if m, err := p.Control.Map(t.Context()); err != nil || m.Version != 1 {
		t.Errorf("map %d, %v; want 1", m.Version, err)
	}
}

func testNewerSchema(t *testing.T, k kind, o couponsql.Options) {
	for _, c := range []struct{ db, set, back, want string }{
		{o.Shards[4].At, "UPDATE shard_schema SET version = 99 WHERE shard = 17", "UPDATE shard_schema SET version = 2 WHERE shard = 17",
			"schema of shard 17 in database db4: couponsql: the schema has version 99, this program knows 2: use a newer program"},
		{o.Control.At, "UPDATE control_schema SET version = 99", "UPDATE control_schema SET version = 1",
			"schema of the control database: couponsql: the schema has version 99, this program knows 2: use a newer program"},
	} {
		execute(t, k, c.db, c.set)
		p, err := couponsql.Open(t.Context(), o)
		if err == nil {
			p.Close()
			t.Fatalf("opened after %s", c.set)
		}
		if err.Error() != c.want {
			t.Errorf("error %q, want %q", err, c.want)
		}
		execute(t, k, c.db, c.back)
	}
}

// testUnreleasedSchema: coupons in the table of before the first release are neither
// passed over nor touched.
func testUnreleasedSchema(t *testing.T, o couponsql.Options) {
	const want = "schema of shard 17 in database db4: couponsql: table outbox_17 is of a version before the first release, whose coupons this program cannot read: use that version, or empty databases"
	db := rawDatabase(t, o, "db4")
	run := func(text string) {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TABLE outbox_17 (id INT NOT NULL PRIMARY KEY)")
	p, err := couponsql.Open(t.Context(), o)
	if err == nil {
		p.Close()
		t.Fatal("opened")
	}
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	run("DROP TABLE outbox_17")
}

// execute runs a statement in a database around the platform.
func execute(t *testing.T, k kind, at, statement string) {
	t.Helper()
	db, err := k.open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Write(t.Context(), func(c shard.Conn) error {
		_, err := c.ExecContext(t.Context(), statement)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenFollowsTheMap(t *testing.T) {
	k := sqlite(t)
	o := k.options(2)
	open(t, o).Close()

	more := o
	more.Shards = append(slices.Clone(o.Shards), k.empty("added"))
	p := open(t, more)
	if got := p.Cluster.Map().Databases(); !slices.Equal(got, []string{"db0", "db1"}) {
		t.Errorf("shards are in %v: a database that is added gets none by itself", got)
	}
	p.Close()

	fewer := o
	fewer.Shards = o.Shards[:1]
	_, err := couponsql.Open(t.Context(), fewer)
	if err == nil || !strings.Contains(err.Error(), `the map names database "db1", which is not configured`) {
		t.Errorf("error %v", err)
	}
	twice := o
	twice.Shards = append(slices.Clone(o.Shards), o.Shards[0])
	_, err = couponsql.Open(t.Context(), twice)
	if err == nil || err.Error() != `couponsql: two databases are named "db0": give each a name of its own` {
		t.Errorf("error %v", err)
	}
	none := o
	none.Control, none.Shards = k.empty("other control"), nil
	if _, err := couponsql.Open(t.Context(), none); err == nil {
		t.Error("opened without any shard")
	}
}

// testMap saves each version once.
func testMap(t *testing.T, control *couponsql.Control) {
	if _, err := control.Map(t.Context()); !errors.Is(err, coupon.ErrNoRow) {
		t.Errorf("map of an empty database: %v", err)
	}
	m, err := shard.Spread("a", "B")
	if err != nil {
		t.Fatal(err)
	}
	save := func(want bool) {
		t.Helper()
		if saved, err := control.SaveMap(t.Context(), m); err != nil || saved != want {
			t.Errorf("saved map %d: %v, %v; want %v", m.Version, saved, err, want)
		}
	}
	save(true)
	save(false)
	m.Version = 3
	save(false)
	m.Version, m.Shards[31] = 2, shard.Place{Database: "c", Epoch: 2}
	save(true)
	if got, err := control.Map(t.Context()); err != nil || got != m {
		t.Errorf("map %v, %v; want %v", got, err, m)
	}
	m.Version, m.Shards[0].Epoch = 3, 0
	if saved, err := control.SaveMap(t.Context(), m); err == nil || saved {
		t.Errorf("saved a map that is not valid: %v, %v", saved, err)
	}

	m.Shards[0].Epoch = 1
	saved := make(chan bool)
	for range 6 {
		go func() {
			one, err := control.SaveMap(t.Context(), m)
			if err != nil {
				t.Error(err)
			}
			saved <- one
		}()
	}
	won := 0
	for range 6 {
		if <-saved {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d saved version 3", won)
	}
}

// TestDialectsHaveTheSameTables compares names and order of columns.
func TestDialectsHaveTheSameTables(t *testing.T) {
	for _, of := range []string{"shard", "control"} {
		mariadb, sqlite := tables(t, shard.MariaDB, of), tables(t, shard.SQLite, of)
		if diff := cmp.Diff(mariadb, sqlite); diff != "" || len(mariadb) < 4 {
			t.Errorf("%s: - MariaDB, + SQLite:\n%s", of, diff)
		}
	}
}

func tables(t *testing.T, d shard.Dialect, of string) map[string][]string {
	steps, err := couponsql.Steps(d, of)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	table := regexp.MustCompile(`(?s)^CREATE TABLE IF NOT EXISTS (\S+) \((.*)\)`)
	column := regexp.MustCompile(`(?m)^  ([a-z_]+) `)
	for _, s := range slices.Concat(steps...) {
		m := table.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		for _, c := range column.FindAllStringSubmatch(m[2], -1) {
			all[m[1]] = append(all[m[1]], c[1])
		}
	}
	return all
}

func TestStatementsOf(t *testing.T) {
	got := couponsql.StatementsOf("-- about a; and b;\n\nCREATE a (\n  x INT, -- it; is\n  y INT\n);\nCREATE b;\n-- end;\n")
	want := []string{"CREATE a (\n  x INT, -- it; is\n  y INT\n)", "CREATE b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
