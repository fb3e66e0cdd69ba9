package migpg_test

import (
	"testing"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
)

// TestPagesOfLargeRowsStayWithinBytes: no page has more than one row beyond
// its bytes, and few rows are fetched in vain.
func TestPagesOfLargeRowsStayWithinBytes(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	run(t, db, numbersTable+"alter table t alter body set storage external; insert into t select n, n, repeat('x', case when n % 100 < 50 then 10 else 100000 end) from generate_series(1, 1000) n")
	s := open(t, planOf(db, "t", "id"))
	var after migrate.Key
	for rows := 0; ; {
		p, err := s.Page(t.Context(), migrate.Range{}, after, 1000, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for i, row := range p.Rows {
			if size >= 1<<20 {
				t.Fatalf("row %d of %d begins at %d bytes", i, len(p.Rows), size)
			}
			size += row.Size()
		}
		rows += len(p.Rows)
		if p.End {
			if rows != 1000 {
				t.Errorf("%d rows", rows)
			}
			return
		}
		if size < 1<<20 && len(p.Rows) < 1000 {
			t.Fatalf("a page of %d rows and %d bytes that is not the last", len(p.Rows), size)
		}
		after = p.Rows[len(p.Rows)-1].Key
	}
}

// TestSplitCutsWhereRowsAre: of a hundred pages at one instant and as many
// within a minute of a year, each part has a page at least.
func TestSplitCutsWhereRowsAre(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	run(t, db, `create table t (at timestamptz, id int, version bigint not null, primary key (at, id));
		insert into t select '2024-01-01Z', n, 1 from generate_series(1, 1000) n;
		insert into t select '2024-12-31 23:59:00Z'::timestamptz + n * interval '10 ms', n, 1 from generate_series(1, 1000) n`)
	for _, order := range []string{"newest-first", "oldest-first"} {
		plan := planOf(db, "t", "at", "id")
		plan.Slots.By, plan.Slots.Order, plan.PageRows = migrate.ByTimestamp, order, 10
		s := open(t, plan)
		for name, r := range map[string]migrate.Range{
			"everything":         {},
			"one instant":        {Hi: migrate.Key{"2024-06-01T00:00:00Z"}},
			"one minute":         {Lo: migrate.Key{"2024-06-01T00:00:00Z"}},
			"part of an instant": {Lo: migrate.Key{"2024-01-01T00:00:00Z", "100"}, Hi: migrate.Key{"2024-01-01T00:00:00Z", "121"}},
		} {
			k, found, err := s.Split(t.Context(), r, nil)
			if err != nil || !found {
				t.Errorf("%s, %s: %v, %v, %v", order, name, k, found, err)
				continue
			}
			below, _ := s.Page(t.Context(), migrate.Range{Lo: r.Lo, Hi: k}, nil, 3000, 0)
			above, _ := s.Page(t.Context(), migrate.Range{Lo: k, Hi: r.Hi}, nil, 3000, 0)
			if min(len(below.Rows), len(above.Rows)) < 10 {
				t.Errorf("%s, %s: %d rows below %v, %d above", order, name, len(below.Rows), k, len(above.Rows))
			}
		}
		if k, found, err := s.Split(t.Context(), migrate.Range{Lo: migrate.Key{"2024-01-01T00:00:00Z", "100"}, Hi: migrate.Key{"2024-01-01T00:00:00Z", "119"}}, nil); found || err != nil {
			t.Errorf("less than two pages are split at %v, %v", k, err)
		}
	}
}

// TestKeysThatNoRowCanHaveAreAbsent: a sink may hold items that were never rows.
func TestKeysThatNoRowCanHaveAreAbsent(t *testing.T) {
	db := connect(t, realtest.PostgresDSN(t))
	run(t, db, `create table t (k uuid, n bigint, version bigint not null, primary key (k, n));
		insert into t select '00000000-0000-7000-8000-000000000001', n, 1 from generate_series(1, 3) n`)
	plan := planOf(db, "t", "k", "n")
	plan.Slots.By = migrate.ByUUIDv7
	s := open(t, plan)
	good := "00000000-0000-7000-8000-000000000001"
	keys := []migrate.Key{{good, "1"}, {"no uuid", "1"}, {good, "9223372036854775808"}, {good, "x"}, {good, "2"}, {"\x00", "1"}, {good, "3"}}
	for _, lock := range []bool{false, true} {
		rows, err := s.Get(t.Context(), keys, lock)
		if err != nil || len(rows) != 3 {
			t.Errorf("lock %v: %d rows, %v; want those that are there", lock, len(rows), err)
		}
	}
}
