package couponsql_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponsql"
	"github.com/tallystick/tallystick/shard"
)

// testOlderSchema sets two shards back to the tables that had a column for each field
// of a coupon, one of them to where a process died after the old table was dropped:
// opened again they have their coupons, field for field.
func testOlderSchema(t *testing.T, o couponsql.Options) {
	p := open(t, o)
	full := sample(t, 7<<10|21)
	full.Status, full.Version, full.User, full.Order, full.IssuedAt = coupon.Reserved, 4, `u"\`, "o", time.UnixMilli(3).UTC()
	full.Valid = coupon.Window{From: time.UnixMilli(4).UTC(), Until: time.UnixMilli(5).UTC()}
	full.ReservedOrder, full.ReservedUntil = "ro", time.UnixMilli(6).UTC()
	full.RedeemedOrder, full.RedeemedUser, full.RedeemedAt = "RO", "ru", time.UnixMilli(7).UTC()
	full.VoidPolicy.Days, full.Attributes = 3, json.RawMessage(`{"a":"ü <&>"}`)
	bare := sample(t, 8<<10|21)
	bare.Attributes = nil
	died := sample(t, 7<<10|22)
	for _, c := range []*coupon.Coupon{&full, &bare, &died} {
		c.Created, c.Updated = time.UnixMilli(1001).UTC(), time.UnixMilli(1002).UTC()
	}

	insert := shard.SQL("INSERT INTO coupon_instance_# VALUES (" + strings.TrimSuffix(strings.Repeat("?, ", 23), ", ") + ")")
	setBack := []shard.Statement{shard.SQL("DROP TABLE coupon_#"), oldTable(t, o)}
	rewrite(t, p, 21, setBack...)
	err := p.Cluster.Write(t.Context(), shard.Shard(21), func(tx *shard.Tx) error {
		for _, c := range []coupon.Coupon{full, bare} {
			if _, err := tx.Exec(insert, oldRow(c)...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Store.Write(t.Context(), died.ID, func(tx coupon.Tx) error { return tx.Add([]coupon.Coupon{died}) }); err != nil {
		t.Fatal(err)
	}
	version2 := shard.SQL("UPDATE shard_schema SET version = 2 WHERE shard = #")
	rewrite(t, p, 21, version2)
	if dialectOf(o) == shard.MariaDB { // SQLite does all of a step or nothing
		rewrite(t, p, 22, version2)
	}

	p = open(t, o)
	for _, want := range []coupon.Coupon{full, bare, died} {
		var got coupon.Coupon
		err := p.Store.Read(t.Context(), want.ID, func(rows coupon.Rows) (err error) {
			got, err = rows.Coupon(want.ID)
			return err
		})
		got.Attributes = bytes.ReplaceAll(got.Attributes, []byte(`": "`), []byte(`":"`)) // MariaDB writes JSON its own way
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b coupon.Code) bool { return a == b })); err != nil || diff != "" {
			t.Errorf("coupon %d: %v, - want, + got:\n%s", want.ID, err, diff)
		}
	}
}

func dialectOf(o couponsql.Options) shard.Dialect {
	if strings.Contains(o.Shards[0].At, "@tcp(") {
		return shard.MariaDB
	}
	return shard.SQLite
}

// oldTable is the statement that made the table.
func oldTable(t *testing.T, o couponsql.Options) shard.Statement {
	t.Helper()
	steps, err := couponsql.Steps(dialectOf(o), "shard")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(steps[0], func(s string) bool { return strings.Contains(s, "coupon_instance_# (") })
	return shard.SQL(steps[0][i])
}

// oldRow is a coupon in the order of the columns.
func oldRow(c coupon.Coupon) []any {
	ms := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	var attributes any
	if c.Attributes != nil {
		attributes = string(c.Attributes)
	}
	return []any{
		c.ID, c.Campaign, c.Code.Symbols(), c.Status, c.Version, c.User, c.Order, ms(c.IssuedAt), ms(c.Valid.From), ms(c.Valid.Until),
		c.ReservedOrder, ms(c.ReservedUntil), c.RedeemedOrder, c.RedeemedUser, ms(c.RedeemedAt), c.Kind, c.Value.Minor, c.Value.Currency,
		c.VoidPolicy.Kind, c.VoidPolicy.Days, attributes, ms(c.Created), ms(c.Updated),
	}
}

// rewrite runs statements on a shard, around the store.
func rewrite(t *testing.T, p *couponsql.Platform, at shard.Shard, statements ...shard.Statement) {
	t.Helper()
	err := p.Cluster.Write(t.Context(), at, func(tx *shard.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
