package couponsql_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	_ "modernc.org/sqlite"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/shard"
)

// sample returns a coupon that is the same each time but for its id.
func sample(t testing.TB, id coupon.ID) coupon.Coupon {
	t.Helper()
	code, err := coupon.ParseStored(fmt.Sprintf("%016d", id))
	if err != nil {
		t.Fatal(err)
	}
	return coupon.Coupon{
		ID: id, Code: code, Campaign: 5, Kind: coupon.FixedAmount, Value: coupon.Amount{Minor: 99, Currency: "EUR"},
		VoidPolicy: coupon.VoidPolicy{Kind: coupon.Restore}, Attributes: json.RawMessage(`{"a":1}`), Version: 1,
		Created: time.UnixMilli(1001), Updated: time.UnixMilli(1002),
	}
}

const outboxGolden = `
3075 1 {"type":"GENERATED","at":1001,"coupon":{"id":3075,"version":1,"campaign":5,"status":0,"kind":"FIXED_AMOUNT","value_minor":99,"currency":"EUR","void_kind":"RESTORE","attributes":{"a":1},"updated":1002,"created":1001},"ids":[3075,4099,5123]}
3075 2 {"type":"CLAIMED","at":1003,"actor":"shop","user":"u","request":"r","coupon":{"id":3075,"version":2,"code":"0000000000003075","campaign":5,"status":1,"user":"u","issued_at":1003,"valid_until":1009,"kind":"FIXED_AMOUNT","value_minor":99,"currency":"EUR","void_kind":"RESTORE","attributes":{"a":1},"updated":1003,"created":1001}}
4099 2 {"type":"ISSUED","at":1003,"order":"o","coupon":{"id":4099,"version":2,"campaign":5,"status":1,"order":"o","issued_at":1003,"valid_until":1009,"kind":"FIXED_AMOUNT","value_minor":99,"currency":"EUR","void_kind":"RESTORE","attributes":{"a":1},"updated":1003,"created":1001},"ids":[4099,5123]}
`

const removedGolden = `
3075 1 {"type":"GENERATED","at":1001}
3075 2 {"type":"CLAIMED","at":1003,"actor":"shop","user":"u","request":"r"}
4099 2 {"type":"ISSUED","at":1003,"order":"o"}
`

var selectLines = shard.SQL("SELECT coupon_id, version, event FROM ledger_# WHERE coupon_id IN (3075, 4099, 5123) AND waiting = ? ORDER BY at, coupon_id, version")

// testOutbox has one line for each change and one for each bulk step, and none for
// what did not happen. A line that is removed from the outbox keeps its event.
func testOutbox(t *testing.T, p *couponsql.Platform) {
	coupons := []coupon.Coupon{sample(t, 3<<10|3), sample(t, 4<<10|3), sample(t, 5<<10|3)}
	next := coupons[0]
	next.Version, next.Status, next.User, next.Updated, next.IssuedAt = 2, coupon.Issued, "u", time.UnixMilli(1003), time.UnixMilli(1003)
	next.Valid.Until = time.UnixMilli(1009)
	ordered := next
	ordered.User, ordered.Order = "", "o"
	e := coupon.Event{Coupon: next.ID, Version: 2, Type: coupon.WasClaimed, At: next.Updated, Actor: "shop", User: "u", Request: "r"}
	for _, do := range []func(coupon.Tx) error{
		func(tx coupon.Tx) error { return tx.Add(coupons) },
		func(tx coupon.Tx) error { return tx.Change(next, e) },
		func(tx coupon.Tx) error { return tx.Change(next, e) }, // too late
		func(tx coupon.Tx) error {
			_, err := tx.IssueAll([]coupon.Ref{{ID: coupons[1].ID}, {ID: coupons[0].ID}, {ID: coupons[2].ID}}, ordered)
			return err
		},
		func(tx coupon.Tx) error {
			_, err := tx.IssueAll([]coupon.Ref{{ID: coupons[0].ID}}, ordered)
			return err
		},
		func(tx coupon.Tx) error { return tx.Add(nil) },
	} {
		if err := p.Store.Write(t.Context(), next.ID, do); err != nil && !errors.Is(err, shard.ErrNoMatch) {
			t.Fatal(err)
		}
	}
	ledgerIs(t, p, next.ID, true, outboxGolden)
	ledgerIs(t, p, next.ID, false, "\n")
	removeAll(t, p.Cluster, next.ID.Shard())
	ledgerIs(t, p, next.ID, true, "\n")
	ledgerIs(t, p, next.ID, false, removedGolden)
	err := p.Store.Read(t.Context(), next.ID, func(rows coupon.Rows) error {
		for id, want := range map[coupon.ID][]coupon.Event{next.ID: {e}, coupons[1].ID: nil} {
			got, err := rows.Events(id)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("%v, coupon %d: - want, + got:\n%s", err, id, diff)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// removeAll removes what is in the outbox of a shard.
func removeAll(t *testing.T, c *shard.Cluster, at shard.Shard) {
	t.Helper()
	o := couponsql.NewOutbox(c)
	lease, _, err := o.Lease(t.Context(), at, "test", time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := o.Oldest(t.Context(), at, 1_000)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Remove(t.Context(), at, lease, rows, time.Millisecond); err != nil {
		t.Fatal(err)
	}
}

// ledgerIs compares the lines of the sample coupons on a shard, those that wait or
// the others.
func ledgerIs(t *testing.T, p *couponsql.Platform, key shard.Key, waiting bool, golden string) {
	t.Helper()
	var lines strings.Builder
	lines.WriteString("\n")
	err := p.Cluster.Read(t.Context(), key, func(r *shard.Reader) error {
		rows, err := r.Query(selectLines, waiting)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, version int64
			var event json.RawMessage
			if err := rows.Scan(&id, &version, (*[]byte)(&event)); err != nil {
				return err
			}
			var text bytes.Buffer
			if err := json.Compact(&text, event); err != nil {
				return err
			}
			fmt.Fprintln(&lines, id, version, text.String())
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(golden, "\n"), strings.Split(lines.String(), "\n")); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

// TestAddRefusesUnlikeCoupons: it would store the first one's fields for all.
func TestAddRefusesUnlikeCoupons(t *testing.T) {
	p := open(t, sqlite(t).options(1))
	other := sample(t, 2<<10)
	other.User = "u"
	err := p.Store.Write(t.Context(), other.ID, func(tx coupon.Tx) error {
		return tx.Add([]coupon.Coupon{sample(t, 1<<10), other})
	})
	if err == nil || err.Error() != "couponsql: coupons 1024 and 2048 are not alike: add them one after the other" {
		t.Errorf("error %v", err)
	}
}

// testWalletRows holds that a page of a wallet looks at its own rows, however many
// coupons lie before it and end at the same time.
func testWalletRows(t *testing.T, p *couponsql.Platform, o couponsql.Options) {
	const user, limit = "rows", 11
	home := shard.Text(user).Bucket().Shard()
	err := p.Store.Write(t.Context(), home, func(tx coupon.Tx) error {
		for i := range coupon.ID(600) {
			c := sample(t, i<<10)
			c.User, c.Valid.Until = user, time.UnixMilli(5000)
			if err := tx.Keep(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	db := rawDatabase(t, o, p.Cluster.Map().Shards[home].Database)
	args := []any{user, 5000, 5000, int64(500 << 10), limit}
	if db.dialect == shard.SQLite {
		var n int
		var plan string
		db.scan(t, "EXPLAIN QUERY PLAN "+couponsql.WalletQuery(db.dialect).On(home), args, &n, &n, &n, &plan)
		if !strings.Contains(plan, "_page (user_id=? AND (valid_until,coupon_id)>(?,?))") {
			t.Errorf("plan %s", plan)
		}
		return
	}
	var analyzed []byte
	db.scan(t, "ANALYZE FORMAT=JSON "+couponsql.WalletQuery(db.dialect).On(home), args, &analyzed)
	var plan any
	if err := json.Unmarshal(analyzed, &plan); err != nil {
		t.Fatal(err)
	}
	if got := rowsRead(plan); got != limit {
		t.Errorf("it reads %v rows, want %d:\n%s", got, limit, analyzed)
	}
}

// TestWalletRowIsFoundByItsKey: the index of the pages begins with the user, too.
func TestWalletRowIsFoundByItsKey(t *testing.T) {
	o := mariadb(t).options(8)
	p := open(t, o)
	const home = shard.Shard(9)
	db := rawDatabase(t, o, p.Cluster.Map().Shards[home].Database)
	var text []byte
	db.scan(t, "EXPLAIN FORMAT=JSON "+couponsql.WalletUpdate(db.dialect).On(home), []any{5000, 2, 0, "o", 7, 3, "somebody", 1}, &text)
	var plan struct {
		Block struct {
			Table struct {
				Key   string   `json:"key"`
				Parts []string `json:"used_key_parts"`
			} `json:"table"`
		} `json:"query_block"`
	}
	if err := json.Unmarshal(text, &plan); err != nil || plan.Block.Table.Key != "PRIMARY" || len(plan.Block.Table.Parts) != 2 {
		t.Errorf("%v:\n%s", err, text)
	}
}

// A raw database is one around the platform.
type raw struct {
	*sql.DB
	dialect shard.Dialect
}

func rawDatabase(t *testing.T, o couponsql.Options, name string) raw {
	t.Helper()
	i := slices.IndexFunc(o.Shards, func(s couponsql.Source) bool { return s.Name == name })
	r := raw{dialect: shard.SQLite}
	driver, dsn := "sqlite", o.Shards[i].At
	if strings.Contains(dsn, "@tcp(") {
		driver, dsn, r.dialect = "mysql", dsn+"?interpolateParams=true", shard.MariaDB
	}
	var err error
	if r.DB, err = sql.Open(driver, dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func (r raw) scan(t *testing.T, query string, args []any, dest ...any) {
	t.Helper()
	if err := r.QueryRowContext(t.Context(), query, args...).Scan(dest...); err != nil {
		t.Fatal(err)
	}
}

// rowsRead returns the rows that tables of an analyzed plan had read from them.
func rowsRead(plan any) (n float64) {
	switch p := plan.(type) {
	case map[string]any:
		if _, table := p["table_name"]; table {
			n, _ = p["r_rows"].(float64)
		}
		for _, part := range p {
			n += rowsRead(part)
		}
	case []any:
		for _, part := range p {
			n += rowsRead(part)
		}
	}
	return n
}
