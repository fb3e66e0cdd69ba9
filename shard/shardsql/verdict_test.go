package shardsql

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/shard"
)

func TestJudgeFindsTheShardATextNames(t *testing.T) {
	for text, want := range map[string]verdict{
		"":                                       {},
		"SELECT 1":                               {},
		"SELECT * FROM campaign":                 {},
		"SELECT * FROM shard_fence":              {},
		"SELECT * FROM coupon":                   {},
		"SELECT * FROM coupon_instance":          {},
		"SELECT * FROM coupon_7":                 {},
		"SELECT * FROM coupon_107":               {},
		"SELECT * FROM coupon_07x":               {},
		"SELECT * FROM coupon_07_old":            {},
		"SELECT * FROM coupon07":                 {},
		"SELECT _07":                             {},
		"SELECT 17":                              {},
		"SELECT * FROM coupon_07":                {1, 7, "coupon_07"},
		"SELECT * FROM COUPON_31":                {1, 31, "COUPON_31"},
		"SELECT * FROM `coupon_00`":              {1, 0, "coupon_00"},
		`SELECT * FROM "coupon_00"`:              {1, 0, "coupon_00"},
		"SELECT * FROM [coupon_00]":              {1, 0, "coupon_00"},
		"SELECT * FROM 'coupon_00'":              {1, 0, "coupon_00"},
		"SELECT * FROM db.coupon_17":             {1, 17, "coupon_17"},
		"SELECT * FROM`db`.`coupon_17`WHERE 1":   {1, 17, "coupon_17"},
		"SELECT coupon_17.id FROM coupon_17":     {1, 17, "coupon_17"},
		"SELECT * FROM coupon_17--":              {1, 17, "coupon_17"},
		"SELECT * FROM/**/coupon_17/**/":         {1, 17, "coupon_17"},
		"SELECT * FROM coupon2_17":               {1, 17, "coupon2_17"},
		"SELECT * FROM größe_17":                 {1, 17, "größe_17"},
		"SELECT * FROM a$_17;":                   {1, 17, "a$_17"},
		"SELECT * FROM stats_99":                 {1, 99, "stats_99"},
		"SELECT * FROM a_17, b_17, c_18, d_19":   {2, 18, "c_18"},
		"SELECT * FROM a_17 JOIN a_18 JOIN a_17": {2, 18, "a_18"},
	} {
		if got := judge(text); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// asShard is the rule in other words.
var asShard = regexp.MustCompile(`(?i)(?:^|[^0-9a-z_$\x80-\x{10ffff}])[0-9a-z_$\x80-\x{10ffff}]+_([0-9]{2})(?:$|[^0-9a-z_$\x80-\x{10ffff}])`)

func FuzzJudge(f *testing.F) {
	for _, seed := range []string{
		"SELECT * FROM coupon_07", "`a_1`.`b_12`", "a_12b_13 c_14", "_12", "__12", "é_12", "a_12\x00", "\xff_12", "a_12,a_13", "K_12",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		v := judge(text)
		found := map[string]bool{}
		for rest := text; ; { // matches may share the character between them
			at := asShard.FindStringSubmatchIndex(rest)
			if at == nil {
				break
			}
			found[rest[at[2]:at[3]]] = true
			rest = rest[at[3]:]
		}
		if v.names != min(len(found), 2) {
			t.Errorf("%q: %d shards, want %v", text, v.names, found)
		}
		if v.names > 0 && !found[fmt.Sprintf("%02d", v.shard)] {
			t.Errorf("%q: shard %d, want %v", text, v.shard, found)
		}
	})
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1 FROM coupon_17":            "shard: statement without its shard key: it names coupon_17 and did not come through a cluster",
		"SELECT 1 FROM coupon_17, coupon_18": "shard: statement without its shard key: it names tables of several shards, one of them coupon_18",
	} {
		err := judge(text).check(context.Background())
		if !errors.Is(err, shard.ErrUnrouted) || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What the guard adds to a statement of a redemption, 250 bytes, and to an INSERT
// of 500 rows.
func BenchmarkGuard(b *testing.B) {
	ctx := routedTo17(b)
	statement := "UPDATE coupon_17 SET status = 2, version = version + 1, redeemed_at = ?, order_no = ? " +
		"WHERE id = ? AND status = 1 AND user_id = ? AND valid_from <= ? AND expire_time > ? " + strings.Repeat("/* */ ", 13)
	insert := "INSERT INTO coupon_17 (id, code, status) VALUES " + strings.Repeat("(?, ?, ?), ", 500)
	for name, text := range map[string]string{"statement": statement, "bulk insert": insert} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if judge(text).check(ctx) != nil {
					b.Fatal("is refused")
				}
			}
		})
	}
}

// routedTo17 returns the context of a call for shard 17.
func routedTo17(t testing.TB) (routed context.Context) {
	m, _ := shard.Spread("db")
	c, err := shard.New(m, map[string]shard.Database{"db": catch{&routed}}, shard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Read(t.Context(), shard.Shard(17), nil)
	return context.WithoutCancel(routed)
}

// catch keeps the context of a read.
type catch struct{ ctx *context.Context }

func (c catch) Read(ctx context.Context, _ func(shard.Conn) error) error {
	*c.ctx = ctx
	return nil
}
func (catch) Write(context.Context, func(shard.Conn) error) error { return nil }
func (catch) Fence() string                                       { return "" }
func (catch) Dialect() shard.Dialect                              { return shard.SQLite }
