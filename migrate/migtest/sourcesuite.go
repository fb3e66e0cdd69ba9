package migtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// TestSource checks that a source keeps the contract. open returns one on a new
// table, and what writes rows into it.
func TestSource(t *testing.T, open func(t *testing.T, table SourceTable) (s migrate.Source, put func(...migrate.Row))) {
	for name, axis := range map[string]migrate.Axis{
		"ulid": {By: migrate.ByULID}, "ulid in lower case": {By: migrate.ByULID, Lower: true},
		"uuidv7": {By: migrate.ByUUIDv7}, "timestamp": {By: migrate.ByTimestamp}, "integer": {By: migrate.ByInteger},
	} {
		axis.Width = 1000
		for parts := 1; parts <= 2; parts++ {
			for _, oldest := range []bool{false, true} {
				table := SourceTable{axis, parts, oldest}
				t.Run(fmt.Sprintf("%s, %d parts, oldest first %v", name, parts, oldest), func(t *testing.T) {
					s, put := open(t, table)
					checkEmpty(t, s)
					c := checkOf(table, s)
					put(table.rows(c.keys)...)
					t.Run("pages are the range", c.pages)
					t.Run("nearest is the first of a page", c.nearest)
					t.Run("split leaves work on both sides", c.split)
					t.Run("get finds what is there", c.get)
					t.Run("extent and clock", c.extent)
				})
			}
		}
	}
}

func checkEmpty(t *testing.T, s migrate.Source) {
	t.Helper()
	p, err := s.Page(t.Context(), migrate.Range{}, nil, 10, 0)
	if err != nil || len(p.Rows) > 0 || !p.End {
		t.Errorf("page of an empty table: %v, %v", p, err)
	}
	if k, found, err := s.Nearest(t.Context(), migrate.Range{}); found || err != nil {
		t.Errorf("nearest in an empty table: %v, %v", k, err)
	}
	if k, found, err := s.Split(t.Context(), migrate.Range{}, nil); found || err != nil {
		t.Errorf("split of an empty table: %v, %v", k, err)
	}
	if e, err := s.Extent(t.Context()); err != nil || e.Min != nil || e.Max != nil {
		t.Errorf("extent of an empty table: %v, %v", e, err)
	}
}

// A sourceCheck checks a source that holds keys.
type sourceCheck struct {
	SourceTable
	migrate.Source
	keys  []migrate.Key // rising
	index map[string]int
}

func checkOf(table SourceTable, s migrate.Source) sourceCheck {
	c := sourceCheck{table, s, table.keys(1500), map[string]int{}}
	for i, k := range c.keys {
		c.index[k.String()] = i
	}
	return c
}

// A span is a range and the indexes [lo, hi) of the keys that lie in it.
type span struct {
	migrate.Range
	lo, hi int
}

// draw returns a random range; some of its ends are bounds of slots, of one
// part, some are keys, some are open.
func (c sourceCheck) draw() span {
	s := span{lo: 0, hi: len(c.keys)}
	s.Lo, s.lo = c.end(0)
	s.Hi, s.hi = c.end(len(c.keys))
	return s
}

// end returns one end of a range, and the index of the first key at or above
// it; open is that of an open one.
func (c sourceCheck) end(open int) (migrate.Key, int) {
	switch rand.IntN(5) {
	case 0:
		return nil, open
	case 1, 2:
		i := rand.IntN(len(c.keys))
		slot, _ := c.Axis.Index(c.keys[i])
		return c.Axis.Bound(slot), slices.IndexFunc(c.keys, func(k migrate.Key) bool {
			s, _ := c.Axis.Index(k)
			return s == slot
		})
	}
	i := rand.IntN(len(c.keys))
	return c.keys[i], i
}

// want returns the keys of s in the order of the plan.
func (c sourceCheck) want(s span) []migrate.Key {
	keys := slices.Clone(c.keys[min(s.lo, s.hi):s.hi])
	if !c.Oldest {
		slices.Reverse(keys)
	}
	return keys
}

func (c sourceCheck) pages(t *testing.T) {
	for range 25 {
		s := c.draw()
		limit, maxBytes := 1+rand.IntN(400), rand.IntN(2)*rand.IntN(40_000)
		if got, want := c.walk(t, s.Range, limit, maxBytes), c.want(s); !slices.EqualFunc(got, want, migrate.Key.Equal) {
			t.Fatalf("%+v by %d rows and %d bytes: %d keys, want %d\n%v\n%v", s, limit, maxBytes, len(got), len(want), ends(got), ends(want))
		}
	}
}

func ends(keys []migrate.Key) []migrate.Key {
	if len(keys) < 3 {
		return keys
	}
	return []migrate.Key{keys[0], keys[len(keys)-1]}
}

// walk returns the keys of r as pages bring them.
func (c sourceCheck) walk(t *testing.T, r migrate.Range, limit, maxBytes int) []migrate.Key {
	t.Helper()
	var keys []migrate.Key
	var after migrate.Key
	for {
		p, err := c.Page(t.Context(), r, after, limit, maxBytes)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Rows) == 0 && !p.End || len(p.Rows) > limit {
			t.Fatalf("%d rows of %d, end %v", len(p.Rows), limit, p.End)
		}
		c.checkBytes(t, p, maxBytes)
		for _, row := range p.Rows {
			c.checkRow(t, row)
			keys, after = append(keys, row.Key), row.Key
		}
		if p.End {
			return keys
		}
	}
}

// checkBytes allows for one row more than maxBytes.
func (c sourceCheck) checkBytes(t *testing.T, p migrate.Page, maxBytes int) {
	t.Helper()
	size := 0
	for i, row := range p.Rows {
		if i > 0 && maxBytes > 0 && size >= maxBytes {
			t.Fatalf("%d rows where %d fill %d bytes", len(p.Rows), i, maxBytes)
		}
		size += row.Size()
	}
}

func (c sourceCheck) checkRow(t *testing.T, got migrate.Row) {
	t.Helper()
	i, known := c.index[got.Key.String()]
	if want := c.row(got.Key, int64(i+1)); !known || !reflect.DeepEqual(got, want) {
		t.Fatalf("row\n%v, want\n%v", got, want)
	}
}

func (c sourceCheck) nearest(t *testing.T) {
	for range 50 {
		s := c.draw()
		k, found, err := c.Nearest(t.Context(), s.Range)
		want := c.want(s)
		if err != nil || found != (len(want) > 0) || found && !k.Equal(want[0]) {
			t.Fatalf("%+v: %v, %v, %v; want %v", s, k, found, err, ends(want))
		}
	}
}

func (c sourceCheck) split(t *testing.T) {
	splits := 0
	for range 50 {
		s := c.draw()
		left, after := c.want(s), migrate.Key(nil)
		if len(left) > 1 && rand.IntN(2) == 0 {
			i := rand.IntN(len(left) / 2)
			left, after = left[i+1:], left[i]
		}
		k, found, err := c.Split(t.Context(), s.Range, after)
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			if len(left) == len(c.keys) {
				t.Fatalf("the whole of %d keys is too little", len(left))
			}
			continue
		}
		splits++
		c.checkSplit(t, s, after, k, left)
	}
	if splits == 0 {
		t.Error("nothing was split")
	}
}

// checkSplit wants a tenth of what is left, at least, on either side of k.
func (c sourceCheck) checkSplit(t *testing.T, s span, after, k migrate.Key, left []migrate.Key) {
	t.Helper()
	below, above := s.Range, s.Range
	below.Hi, above.Lo = k, k
	under, over := below, above
	afterUnder, afterOver := migrate.Key(nil), after
	if c.Oldest {
		afterUnder, afterOver = after, nil
	}
	n, m := c.count(t, under, afterUnder), c.count(t, over, afterOver)
	if n+m != len(left) || min(n, m) < len(left)/10 || min(n, m) < 1 {
		t.Fatalf("%+v after %v, split at %v: %d and %d of %d", s, after, k, n, m, len(left))
	}
}

// count returns how many rows of r lie beyond after.
func (c sourceCheck) count(t *testing.T, r migrate.Range, after migrate.Key) int {
	t.Helper()
	p, err := c.Page(t.Context(), r, after, len(c.keys)+1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return len(p.Rows)
}

func (c sourceCheck) get(t *testing.T) {
	absent := c.SourceTable.keys(len(c.keys) + 3)[len(c.keys)]
	for _, lock := range []bool{false, true} {
		want := []migrate.Key{c.keys[0], c.keys[7], c.keys[len(c.keys)-1]}
		rows, err := c.Get(context.WithoutCancel(t.Context()), append(slices.Clone(want), absent), lock)
		if err != nil || len(rows) != len(want) {
			t.Fatalf("%d rows of 3, %v", len(rows), err)
		}
		for _, row := range rows {
			c.checkRow(t, row)
		}
		if rows, err := c.Get(t.Context(), nil, lock); err != nil || len(rows) > 0 {
			t.Errorf("no keys: %v, %v", rows, err)
		}
	}
}

func (c sourceCheck) extent(t *testing.T) {
	e, err := c.Extent(t.Context())
	if err != nil || !e.Min.Equal(c.keys[0]) || !e.Max.Equal(c.keys[len(c.keys)-1]) {
		t.Errorf("%+v, %v; want %v", e, err, ends(c.keys))
	}
	now, err := c.Now(t.Context())
	if err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("now is %v, %v", now, err)
	}
}
