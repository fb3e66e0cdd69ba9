package migpg_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
)

const ulidTable = `create table %s (id text not null, version bigint not null, data json);
	insert into %[1]s select '01' || to_char(n, 'FM000000') || '000000000000000000', n, '{}' from generate_series(1, 3000) n;`

// TestPreflightFindings: each table has one flaw, and one has none.
func TestPreflightFindings(t *testing.T) {
	for name, c := range map[string]struct {
		sql  string
		plan func(*migrate.Plan)
		want string // "": neither a refusal nor a warning
	}{
		"a good table": {sql: "create unique index on t (id)"},
		"rows in no order": {
			sql:  "truncate t; insert into t select '01' || to_char(n, 'FM000000') || '000000000000000000', n, to_json(repeat('x', 300)) from generate_series(1, 30000) n order by hashint4(n); create unique index on t (id); analyze t",
			plan: func(p *migrate.Plan) { p.Slots.Width.Time = 5 * time.Minute },
		}, // a bitmap and a sort in another session
		"a partitioned one":  {sql: "drop table t; create table t (id text primary key, version bigint not null) partition by range (id); create table t0 partition of t for values from ('0') to ('01001'); create table t1 partition of t for values from ('01001') to ('Z'); insert into t select '01' || to_char(n, 'FM000000') || '000000000000000000', n from generate_series(1, 3000) n"},
		"no index":           {sql: "", want: `refusal source.key: no unique index covers exactly these columns, or some of them: rows of the same key would be passed over (create unique index concurrently on "public"."t" ("id"))`},
		"a partial index":    {sql: "create unique index on t (id) where version > 0", want: "refusal source.key: no unique index"},
		"an index of more":   {sql: "create unique index on t (id, version)", want: "refusal source.key: no unique index"},
		"an index elsewhere": {sql: `create unique index on t (id collate "en-x-icu")`, want: `refusal source.key: a page sorts (create unique index concurrently on "public"."t" ("id"))`},
		"another order": {
			sql: "create unique index on t (version, id)", plan: func(p *migrate.Plan) { p.Source.Key = []string{"id", "version"} },
			want: `refusal source.key: a page sorts (create unique index concurrently on "public"."t" ("id", "version"))`,
		},
		"a hash of the key":  {sql: "create unique index on t (version); create index on t using hash (id)", plan: func(p *migrate.Plan) { p.Source.Key = []string{"id", "version"} }, want: "refusal source.key: a page sorts"},
		"a key that is null": {sql: "create unique index on t (id); alter table t alter id drop not null", want: `refusal source.key: column "id" may be null: such rows would not be read (alter table "public"."t" alter "id" set not null)`},
		"lower case":         {sql: "update t set id = overlay(id placing 'abc' from 9); create unique index on t (id)", want: "refusal slots.case: the ULIDs are in lower case, like 01"},
		"lower case that is meant": {
			sql:  "update t set id = overlay(id placing 'abc' from 9); create unique index on t (id)",
			plan: func(p *migrate.Plan) { p.Slots.Case = "lower" },
		},
		"upper case in a plan of lower": {
			sql:  "update t set id = overlay(id placing 'ABC' from 9); create unique index on t (id)",
			plan: func(p *migrate.Plan) { p.Slots.Case = "lower" }, want: "refusal slots.case: the ULIDs are in upper case, like 01",
		},
		"mixed case": {
			sql:  "update t set id = overlay(id placing case when version % 2 = 0 then 'abc' else 'ABC' end from 9); create unique index on t (id)",
			want: "refusal source.key: key 01",
		},
		"mixed case in one key": {
			sql:  "update t set id = '01aBc' || substr(id, 6) where version = 1500; create unique index on t (id)",
			plan: func(p *migrate.Plan) { p.Slots.Case = "lower" }, want: "refusal source.key: key 01aBc",
		},
		"no ULID":             {sql: "update t set id = 'x' where version = 7; create unique index on t (id)", want: "refusal source.key: key x is not what slots.by says (ulid: a ULID has 26 characters), nor are 1 of 2"},
		"a key of the future": {sql: "update t set id = '7Z' || substr(id, 3) where version = 7; create unique index on t (id)", want: "warning source.key: key 7Z0000"},
		"a key of the past":   {sql: "update t set id = '00' || substr(id, 3) where version = 7; create unique index on t (id)", want: "warning source.key: key 00000007"},
		"a version by time":   {sql: "alter table t alter version type timestamptz using to_timestamp(version); create unique index on t (id)", want: `warning write.version: column "version" is a time`},
		"tables that inherit": {sql: "create unique index on t (id); create table child () inherits (t); create unique index on child (id)", want: "refusal source.table: other tables inherit"},
		"a strange collation": {sql: `create collation letters (provider = icu, locale = 'und-u-kn-true'); alter table t alter id type text collate letters; create unique index on t (id)`, want: `refusal source.key: the collation public.letters of column "id" does not sort digits and letters as bytes`},
	} {
		t.Run(name, func(t *testing.T) {
			db := connect(t, realtest.PostgresDSN(t))
			run(t, db, fmt.Sprintf(ulidTable, "t"))
			run(t, db, c.sql)
			plan := planOf(db, "t", "id")
			plan.Slots.By = migrate.ByULID
			plan.Slots.Width.Time = 3600e9
			if c.plan != nil {
				c.plan(&plan)
			}
			found, err := open(t, plan).Preflight(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			checkFindings(t, found, c.want)
		})
	}
}

func checkFindings(t *testing.T, found []migrate.Finding, want string) {
	t.Helper()
	seen := want == ""
	for _, f := range found {
		line := string(f.Severity) + " " + f.Error()
		switch {
		case want != "" && strings.HasPrefix(line, want):
			seen = true
		case f.Severity != migrate.Note:
			t.Errorf("found %s", line)
		}
	}
	if !seen {
		t.Errorf("did not find %s in %v", want, found)
	}
}

// TestPreflightAsAUserWithFewRights needs nothing but select, and says what is
// missing.
func TestPreflightAsAUserWithFewRights(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	role := "reader_" + db.Config().Database
	run(t, db, fmt.Sprintf(ulidTable, "t")+"create unique index on t (id); create table tallystick_outbox (id int); create role "+role+" login; grant select on t to "+role+"; alter table t enable row level security; create policy all_rows on t using (true)")
	plan := planOf(db, "t", "id")
	plan.Source.DSN = strings.Replace(plan.Source.DSN, "postgres@", role+"@", 1)
	plan.Slots.By, plan.Slots.Width.Time = migrate.ByULID, 3600e9
	s := open(t, plan)
	found, err := s.Preflight(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(found)
	for _, want := range []string{"row-level security hides rows", "may not lock rows", "may not read and clear tallystick_outbox"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	run(t, db, "alter table t disable row level security; grant update (data) on t to "+role+"; drop table tallystick_outbox")
	found, err = s.Preflight(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkFindings(t, found, "")
	run(t, db, "revoke select on t from "+role)
	if found, err = s.Preflight(t.Context()); err != nil || !strings.Contains(fmt.Sprint(found), "permission denied for table t") {
		t.Errorf("%v, %v", found, err)
	}
}

// TestTinyTablesAreNotRefused: the planner reads all of an index of one page.
func TestTinyTablesAreNotRefused(t *testing.T) {
	for _, rows := range []int{1, 5, 50} {
		db := connect(t, realtest.PostgresDSN(t))
		run(t, db, numbersTable+fmt.Sprintf("insert into t select n, n, '' from generate_series(1, %d) n; analyze t", rows))
		found, err := open(t, planOf(db, "t", "id")).Preflight(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Severity == migrate.Refusal {
				t.Errorf("%d rows: %v", rows, f)
			}
		}
	}
}
