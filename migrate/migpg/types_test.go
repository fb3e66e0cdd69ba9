package migpg_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migpg"
)

func num(s string) migrate.Value { return migrate.Value{Kind: migrate.Number, Text: s} }
func txt(s string) migrate.Value { return migrate.Value{Kind: migrate.Text, Text: s} }
func jsn(s string) migrate.Value { return migrate.Value{Kind: migrate.JSON, Text: s} }
func byt(s string) migrate.Value { return migrate.Value{Kind: migrate.Bytes, Text: s} }
func boo(s string) migrate.Value { return migrate.Value{Kind: migrate.Bool, Text: s} }
func lst(v ...migrate.Value) migrate.Value {
	return migrate.Value{Kind: migrate.List, List: append([]migrate.Value{}, v...)}
}

var null migrate.Value

// vectors are what PostgreSQL holds and what becomes of it.
var vectors = []struct {
	typ, literal string
	want         migrate.Value
}{
	{"bool", "true", boo("true")},
	{"bool", "false", boo("false")},
	{"int2", "-32768", num("-32768")},
	{"int4", "2147483647", num("2147483647")},
	{"int8", "-9223372036854775808", num("-9223372036854775808")},
	{"oid", "4294967295", num("4294967295")},
	{"numeric", "123456789012345678901234567890123456789", num("123456789012345678901234567890123456789")},
	{"numeric", "-0.000000000000000000000000000000000000001", num("-0.000000000000000000000000000000000000001")},
	{"numeric", "1.50", num("1.50")},
	{"numeric(10,3)", "1.5", num("1.500")},
	{"numeric", "NaN", num("NaN")},
	{"numeric", "Infinity", num("Infinity")},
	{"numeric", "-Infinity", num("-Infinity")},
	{"float4", "0.1", num("0.1")},
	{"float8", "0.1", num("0.1")},
	{"float8", "9007199254740993", num("9.007199254740992e+15")}, // PostgreSQL's own doing
	{"float8", "1e308", num("1e+308")},
	{"float8", "5e-324", num("5e-324")},
	{"float8", "-0", num("-0")},
	{"float8", "NaN", num("NaN")},
	{"float8", "-Infinity", num("-Infinity")},
	{"text", "", txt("")},
	{"text", "a\nb\\\t\"' ü 😀", txt("a\nb\\\t\"' ü 😀")},
	{"varchar(5)", "abc", txt("abc")},
	{"char(5)", "abc", txt("abc  ")},
	{"name", "abc", txt("abc")},
	{`"char"`, "x", txt("x")},
	{"mood", "so, so", txt("so, so")},
	{"email", "a@b", txt("a@b")},
	{"xml", "<a>1</a>", txt("<a>1</a>")},
	{"uuid", "01924A00-0000-7000-8000-00000000000F", txt("01924a00-0000-7000-8000-00000000000f")},
	{"inet", "10.0.0.1/8", txt("10.0.0.1/8")},
	{"cidr", "::/0", txt("::/0")},
	{"macaddr", "08:00:2b:01:02:03", txt("08:00:2b:01:02:03")},
	{"bit(3)", "101", txt("101")},
	{"varbit", "", txt("")},
	{"json", `{"b": 9007199254740993,  "a":"\u0000", "b":1e400}`, jsn(`{"b": 9007199254740993,  "a":"\u0000", "b":1e400}`)},
	{"json", "null", jsn("null")},
	{"jsonb", `{"b": 9007199254740993, "a": 1.50, "aa": 12345678901234567890123}`, jsn(`{"a": 1.50, "b": 9007199254740993, "aa": 12345678901234567890123}`)},
	{"bytea", `\x00ff5c7b`, byt("\x00\xff\\{")},
	{"bytea", "", byt("")},
	{"timestamptz", "2024-10-20 02:59:00.123456+02", txt("2024-10-20T00:59:00.123456Z")},
	{"timestamptz", "2024-10-20 02:59:00.120000Z", txt("2024-10-20T02:59:00.12Z")},
	{"timestamptz", "2024-10-20 02:59:00Z", txt("2024-10-20T02:59:00Z")},
	{"timestamptz", "infinity", txt("infinity")},
	{"timestamptz", "-infinity", txt("-infinity")},
	{"timestamptz", "0044-03-15 12:00:00.5Z BC", txt("0044-03-15T12:00:00.5Z BC")},
	{"timestamptz", "294276-12-31 23:59:59.999999Z", txt("294276-12-31T23:59:59.999999Z")},
	{"timestamp", "2024-10-20 02:59:00.123456", txt("2024-10-20T02:59:00.123456")},
	{"timestamp", "infinity", txt("infinity")},
	{"date", "2024-02-29", txt("2024-02-29")},
	{"date", "0044-03-15 BC", txt("0044-03-15 BC")},
	{"date", "infinity", txt("infinity")},
	{"time", "24:00:00", txt("24:00:00")},
	{"timetz", "02:59:00.5+02", txt("02:59:00.5+02")},
	{"interval", "1 year 2 mons 3 days 04:05:06.5", txt("P1Y2M3DT4H5M6.5S")},
	{"int4[]", "{}", lst()},
	{"int4[]", "{1,NULL,-3}", lst(num("1"), null, num("-3"))},
	{"int4[]", "{{1,2},{3,4}}", lst(lst(num("1"), num("2")), lst(num("3"), num("4")))},
	{"int4[]", "[5:6]={1,2}", lst(num("1"), num("2"))},
	{"text[]", `{"",NULL,"NULL","a,b","{}","\"\\"}`, lst(txt(""), null, txt("NULL"), txt("a,b"), txt("{}"), txt(`"\`))},
	{"bytea[]", `{"\\x00ff",""}`, lst(byt("\x00\xff"), byt(""))},
	{"timestamptz[]", `{"2024-10-20 02:59:00Z",infinity}`, lst(txt("2024-10-20T02:59:00Z"), txt("infinity"))},
	{"json[]", `{"{\"a\": [1, 2]}"}`, lst(jsn(`{"a": [1, 2]}`))},
	{"bool[]", `{t,f}`, lst(boo("true"), boo("false"))},
	{"mood[]", `{"so, so"}`, lst(txt("so, so"))},
	{"email[]", `{a@b}`, lst(txt("a@b"))},
	{"tags", `{a,b}`, lst(txt("a"), txt("b"))},
}

const domains = `create type mood as enum ('so, so'); create domain address as text check (value <> ''); create domain email as address; create domain tags as text[];`

func TestEveryTypeKeepsWhatItHolds(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	var columns, literals []string
	for i, v := range vectors {
		columns = append(columns, fmt.Sprintf("c%d %s", i, v.typ))
		literals = append(literals, "'"+strings.ReplaceAll(v.literal, "'", "''")+"'")
	}
	run(t, db, domains+"create table every (id bigint primary key, version bigint not null,"+strings.Join(columns, ",")+");"+
		"insert into every values (1, 1,"+strings.Join(literals, ",")+"); insert into every values (2, 2);")
	s := open(t, planOf(db, "every", "id"))
	p, err := s.Page(t.Context(), migrate.Range{}, nil, 10, 0)
	if err != nil || len(p.Rows) != 2 {
		t.Fatalf("%d rows, %v", len(p.Rows), err)
	}
	for i, v := range vectors {
		if got := p.Rows[1].Fields[2+i].Value; !reflect.DeepEqual(got, v.want) {
			t.Errorf("%s %s: got %+v, want %+v", v.typ, v.literal, got, v.want)
		}
		if got := p.Rows[0].Fields[2+i].Value; !reflect.DeepEqual(got, null) {
			t.Errorf("%s null: got %+v", v.typ, got)
		}
		if v.want.Kind == migrate.Text || v.want.Kind == migrate.Number {
			same := false
			err := db.QueryRow(t.Context(), fmt.Sprintf("select $1::text::%s::text = $2::text::%[1]s::text", v.typ), v.want.Text, v.literal).Scan(&same)
			if err != nil || !same {
				t.Errorf("%s %s: PostgreSQL reads %q as another, %v", v.typ, v.literal, v.want.Text, err)
			}
		}
	}
}

func TestVersionsAreIntegersOrMicroseconds(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	run(t, db, "create table a (id bigint primary key, version timestamptz not null); create table b (id bigint primary key, version timestamp not null); create table c (id bigint primary key, version int4 not null)")
	for literal, want := range map[string]int64{
		"2024-10-20 02:59:00.123456Z":  1729393140123456,
		"1969-12-31 23:59:59.999999Z":  -1,
		"infinity":                     math.MaxInt64,
		"-infinity":                    math.MinInt64,
		"0001-01-01 00:00:00Z BC":      -62167219200000000,
		"0005-02-28 00:00:00Z BC":      -62288438400000000,
		"10000-02-29 00:00:00.000001Z": 253407398400000001,
	} {
		for _, table := range []string{"a", "b"} {
			run(t, db, "delete from "+table+"; insert into "+table+" values (1, '"+literal+"')")
			checkVersion(t, open(t, planOf(db, table, "id")), want)
		}
		if want == math.MaxInt64 || want == math.MinInt64 {
			continue
		}
		var oracle int64
		if err := db.QueryRow(t.Context(), "select (extract(epoch from $1::text::timestamptz) * 1000000)::int8", literal).Scan(&oracle); err != nil || oracle != want {
			t.Errorf("PostgreSQL says %d, %v; want %d", oracle, err, want)
		}
	}
	run(t, db, "insert into c values (1, -7)")
	checkVersion(t, open(t, planOf(db, "c", "id")), -7)
}

func checkVersion(t *testing.T, s *migpg.Source, want int64) {
	t.Helper()
	rows, err := s.Get(t.Context(), []migrate.Key{{"1"}}, false)
	if err != nil || len(rows) != 1 || rows[0].Version != want {
		t.Errorf("%v, %v; want version %d", rows, err, want)
	}
}

func TestOpenRefusesWhatItCannotRead(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	run(t, db, `create type pair as (a int, b int);
		create table good (id bigint primary key, version bigint not null, ts timestamp not null, body text);
		create table odd (id bigint primary key, version bigint, price money, p pair, r int4range, v tsvector, ii int2vector, ok text);
		create view seen as select * from good`)
	for want, change := range map[string]func(*migrate.Plan){
		`source.table: table "gone" does not exist`:                     func(p *migrate.Plan) { p.Source.Table = "gone" },
		`source.table: table "Good" does not exist`:                     func(p *migrate.Plan) { p.Source.Table = "Good" },
		`source.table: "seen" is not a table`:                           func(p *migrate.Plan) { p.Source.Table = "seen" },
		`source.key: the table has no column "ID" (did you mean "id"?)`: func(p *migrate.Plan) { p.Source.Key = []string{"ID"} },
		`slots.by: column "id" is of type bigint, not timestamptz`:      func(p *migrate.Plan) { p.Slots.By = migrate.ByTimestamp },
		`slots.by: column "ts" is of type timestamp without time zone, not timestamptz`: func(p *migrate.Plan) {
			p.Slots.By, p.Source.Key = migrate.ByTimestamp, []string{"ts"}
		},
		`write.version: the table has no column "v"`:                                                            func(p *migrate.Plan) { p.Write.Version = "v" },
		`write.version: column "body" is of type text`:                                                          func(p *migrate.Plan) { p.Write.Version = "body" },
		`columns.datum: the table has no column "datum" (correct the name)`:                                     func(p *migrate.Plan) { p.Columns = map[string]migrate.ColumnPlan{"datum": {}} },
		`columns.price: type money cannot be migrated`:                                                          func(p *migrate.Plan) { p.Source.Table = "odd" },
		`columns.p: type pair cannot be migrated`:                                                               func(p *migrate.Plan) { p.Source.Table = "odd" },
		`columns.r: type int4range cannot be migrated`:                                                          func(p *migrate.Plan) { p.Source.Table = "odd" },
		`columns.v: type tsvector cannot be migrated`:                                                           func(p *migrate.Plan) { p.Source.Table = "odd" },
		`columns.ii: type int2vector cannot be migrated`:                                                        func(p *migrate.Plan) { p.Source.Table = "odd" },
		`write.version: column "version" may be null (alter table "public"."odd" alter "version" set not null)`: func(p *migrate.Plan) { p.Source.Table = "odd" },
	} {
		plan := planOf(db, "good", "id")
		change(&plan)
		_, err := migpg.Open(t.Context(), plan)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestOnlyWantedColumnsAreRead(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	run(t, db, `create table odd (price money, tenant text, id bigint primary key, body text, version bigint not null, gone text, data json); alter table odd drop gone; insert into odd values (1, 't', 2, 'b', 3, '{}')`)
	plan := planOf(db, "odd", "id")
	plan.Columns = map[string]migrate.ColumnPlan{"data": {As: "d"}}
	plan.Sink.Key = migrate.SinkKeyPlan{Partition: "tenant", Sort: "id"}
	p, err := open(t, plan).Page(t.Context(), migrate.Range{}, nil, 10, 0)
	if err != nil || len(p.Rows) != 1 {
		t.Fatalf("%v, %v", p, err)
	}
	var names []string
	for _, f := range p.Rows[0].Fields {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "tenant id version data" {
		t.Errorf("columns %s", got)
	}
}
