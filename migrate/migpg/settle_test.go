package migpg_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migpg"
)

// awaitRow returns when a query finds a row.
func awaitRow(t *testing.T, db *pgx.Conn, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		tag, err := db.Exec(ctx, sql)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		if tag.RowsAffected() > 0 {
			return
		}
	}
}

func TestAwaitWaitsForOpenTransactions(t *testing.T) {
	dsn := realtest.PostgresDSN(t)
	db, early, late := connect(t, dsn), connect(t, dsn), connect(t, dsn)
	run(t, db, numbersTable)
	s := open(t, planOf(db, "t", "id"))
	// Nothing has ended since early began: the xmax of a snapshot is early's.
	run(t, early, "begin; insert into t values (1, 1)")
	token, err := s.Settled(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, late, "begin; insert into t values (2, 1)")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = s.Await(ctx, token)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), fmt.Sprint("process ", early.PgConn().PID())) {
		t.Errorf("early is open: %v", err)
	}
	run(t, early, "commit")
	if err := s.Await(t.Context(), token); err != nil {
		t.Error(err)
	}
	if k, found, err := s.Nearest(t.Context(), migrate.Range{}); err != nil || !found || k[0] != "1" {
		t.Errorf("nearest %v, %v, %v", k, found, err)
	}
	run(t, late, "rollback")
	if err := s.Await(t.Context(), "1; drop table t"); err == nil {
		t.Error("no token was taken")
	}
}

func TestOutboxHoldsWhatIsLeft(t *testing.T) {
	dsn := realtest.PostgresDSN(t)
	db, open1 := connect(t, dsn), connect(t, dsn)
	run(t, db, numbersTable)
	s := open(t, planOf(db, "t", "id"))
	if left, none, err := s.Pending(t.Context(), 10); err != nil || !none || left != nil {
		t.Fatalf("no table: %v, %v, %v", left, none, err)
	}
	if _, none, err := s.Newest(t.Context()); err != nil || !none {
		t.Fatalf("no table: %v, %v", none, err)
	}
	run(t, db, migpg.OutboxDDL)
	if id, none, err := s.Newest(t.Context()); err != nil || none || id != 0 {
		t.Fatalf("an empty table: %d, %v, %v", id, none, err)
	}
	run(t, db, "insert into tallystick_outbox (table_name, key, ref, version) values ('t', '1~b%2B', 'b~1', 9007199254740993), ('u', '2', null, 1), ('public.t', '3', null, null), ('other.t', '4', null, 1)")
	run(t, open1, "begin; insert into tallystick_outbox (table_name, key) values ('t', '5')")
	left, none, err := s.Pending(t.Context(), 10)
	if err != nil || none || len(left) != 2 || !left[0].Key.Equal(migrate.Key{"1", "b+"}) || !left[1].Key.Equal(migrate.Key{"3"}) {
		t.Fatalf("%v, %v, %v", left, none, err)
	}
	if left, _, err := s.Pending(t.Context(), 1); err != nil || len(left) != 1 || left[0].Key[0] != "1" {
		t.Errorf("the oldest: %v, %v", left, err)
	}
	if l := left[0]; l.Ref != "b~1" || l.Version != 9007199254740993 || left[1].Ref != "" || left[1].Version != 0 {
		t.Errorf("%+v", left)
	}
	if id, none, err := s.Newest(t.Context()); err != nil || none || id != 3 {
		t.Errorf("of the table's notes that can be seen, the newest is %d, %v, %v", id, none, err)
	}
	run(t, open1, "commit")
	if err := s.Clear(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if err := s.Clear(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	left, _, err = s.Pending(t.Context(), 10)
	if err != nil || len(left) != 1 || left[0].Key[0] != "5" {
		t.Errorf("%v, %v", left, err)
	}
	if lag, err := s.Lag(t.Context()); lag != 0 || err != nil {
		t.Errorf("a primary lags %v, %v", lag, err)
	}
}

// TestOlderOutboxesAreReadAsFarAsTheyTell: the columns ref and version came
// later, and the DDL adds them.
func TestOlderOutboxesAreReadAsFarAsTheyTell(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	run(t, db, numbersTable+`create table tallystick_outbox (id bigint generated always as identity primary key, table_name text not null, key text not null);
		insert into tallystick_outbox (table_name, key) values ('t', '1')`)
	s := open(t, planOf(db, "t", "id"))
	for range 2 {
		if left, _, err := s.Pending(t.Context(), 10); err != nil || len(left) != 1 || left[0].Ref != "" || left[0].Version != 0 {
			t.Fatalf("%+v, %v", left, err)
		}
		if found, err := s.Preflight(t.Context()); err != nil || !strings.Contains(fmt.Sprint(found), "tallystick_outbox has no columns ref and version") {
			t.Errorf("%v, %v", found, err)
		}
		run(t, db, migpg.OutboxDDL) // adds version only: ref was there before it
	}
	run(t, db, "alter table tallystick_outbox add ref text")
	if found, err := s.Preflight(t.Context()); err != nil || strings.Contains(fmt.Sprint(found), "tallystick_outbox") {
		t.Errorf("%v, %v", found, err)
	}
}

// TestNotesThatCannotBeReadKeepNoOtherFromBeingRead: the table may have been made
// by hand.
func TestNotesThatCannotBeReadKeepNoOtherFromBeingRead(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	run(t, db, numbersTable+`create table tallystick_outbox (id bigint generated always as identity primary key, table_name text, key text, ref text, version text);
		insert into tallystick_outbox (table_name, key, version) values ('t', '%zz', '1'), ('t', null, '1'), ('t', '1', 'new'), ('t', '2', '99999999999999999999'), ('t', '3', '7')`)
	left, _, err := open(t, planOf(db, "t", "id")).Pending(t.Context(), 10)
	if err != nil || len(left) != 5 {
		t.Fatalf("%+v, %v", left, err)
	}
	for i, want := range []migrate.Left{
		{ID: 1, Key: migrate.Key{"%zz"}, Version: 1, Flaw: `invalid URL escape "%zz"`}, {ID: 2, Key: migrate.Key{""}, Version: 1, Flaw: "it is null"},
		{ID: 3, Key: migrate.Key{"1"}}, {ID: 4, Key: migrate.Key{"2"}}, {ID: 5, Key: migrate.Key{"3"}, Version: 7},
	} {
		if !reflect.DeepEqual(left[i], want) {
			t.Errorf("%+v, want %+v", left[i], want)
		}
	}
}

// TestAnOutboxThatCannotBeReadIsRefused, not waited for at the end.
func TestAnOutboxThatCannotBeReadIsRefused(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	run(t, db, numbersTable+"create table tallystick_outbox (id uuid, tab text, key text, ref text, version bigint)")
	found, err := open(t, planOf(db, "t", "id")).Preflight(t.Context())
	if err != nil || migrate.FirstRefusal(found) == nil || !strings.Contains(fmt.Sprint(found), "tallystick_outbox cannot be read") {
		t.Errorf("%v, %v", found, err)
	}
}

// TestANameAloneIsOfTheTableThatItMeans: of several schemas' the one that the
// search path finds, and the only one where it finds none.
func TestANameAloneIsOfTheTableThatItMeans(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	run(t, db, numbersTable+"create schema b; create table b.t (like t including all); create table b.u (like t including all);"+
		migpg.OutboxDDL+"; insert into tallystick_outbox (table_name, key) values ('t', '1'), ('u', '2'), ('public.t', '3'), ('b.t', '4'), ('b.u', '5')")
	for table, want := range map[string]string{"t": "13", "public.t": "13", "b.t": "4", "b.u": "25"} {
		left, _, err := open(t, planOf(db, table, "id")).Pending(t.Context(), 10)
		got := ""
		for _, l := range left {
			got += l.Key[0]
		}
		if err != nil || got != want {
			t.Errorf("of %s: notes %s, %v; want %s", table, got, err, want)
		}
	}
}
