package seqtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/sequence"
)

func testList(t *testing.T, f fixture) {
	const many = 240
	var batch []sequence.Record
	for i := range many {
		batch = append(batch, f.record(t, fmt.Sprintf("n/%d", i)))
	}
	for i, odd := range []string{
		"odd/slash/es//", "odd/100%", "odd/%2F", "odd/ leading and trailing ", "odd/quote'\"`", "odd/\\", "odd/ünïcödé", "odd/日本語",
		"odd/\U0001F9EE", "odd/\uffff", "odd/\U0010ffff", "odd/*?[a-z]", "odd/#fragment", "odd/a&b=c", "odd/.", "odd/..", "odd/",
	} {
		r := f.record(t, odd)
		r.Next = int64(i) + 1
		batch = append(batch, r)
	}
	long := f.record(t, "odd/255")
	long.Definition.Name += strings.Repeat("é", 200)
	long.Definition.Name = strings.ToValidUTF8(long.Definition.Name[:sequence.MaxNameBytes], "x")
	tomb := f.record(t, "odd/tomb")
	tomb.State = sequence.StateDeleted
	batch = append(batch, long, tomb)
	f.create(t, batch...)

	for _, c := range []struct {
		prefix string
		limit  int
	}{
		{f.name(""), 1000}, {f.name(""), 7}, {f.name(""), 100}, {f.name("n/"), 50}, {f.name("n/1"), 1000}, {f.name("odd/"), 1},
		{f.name("odd/%"), 10}, {f.name("odd/\U0001F9EE"), 10}, {f.name("odd/日"), 10}, {f.name("odd"), 3}, {long.Definition.Name, 10},
		{f.name("N/"), 10}, {f.name("none"), 10}, {f.name("n/")[1:], 10}, {"", 1000}, {"", 33},
	} {
		t.Run(fmt.Sprintf("%q by %d", strings.TrimPrefix(c.prefix, f.salt), c.limit), func(t *testing.T) {
			f.lists(t, c.prefix, c.limit, batch)
		})
	}
	t.Run("the order is fixed", func(t *testing.T) {
		first, second := f.all(t, f.name(""), 13), f.all(t, f.name(""), 101)
		byName := func(r sequence.Record) string { return r.Definition.Name }
		if a, b := collect(first, byName), collect(second, byName); !slices.Equal(a, b) {
			t.Fatalf("two listings differ:\n%q\n%q", a, b)
		}
	})
}

// lists fails the test unless the pages of a prefix have exactly the records
// of batch that belong there; without a prefix there may be others.
func (f fixture) lists(t *testing.T, prefix string, limit int, batch []sequence.Record) {
	t.Helper()
	missing := map[string]sequence.Record{}
	for _, r := range batch {
		if strings.HasPrefix(r.Definition.Name, prefix) {
			missing[r.Definition.Name] = r
		}
	}
	seen := map[string]bool{}
	for _, got := range f.all(t, prefix, limit) {
		name := got.Definition.Name
		if err := sequence.CheckName(name); err != nil || !strings.HasPrefix(name, prefix) || seen[name] {
			t.Fatalf("name %q does not belong here or comes twice (%v)", name, err)
		}
		seen[name] = true
		if want, ok := missing[name]; ok {
			same(t, got, want)
			delete(missing, name)
		} else if prefix != "" {
			t.Fatalf("name %q was never created", name)
		}
	}
	if len(missing) > 0 {
		t.Fatalf("%d records of %d are missing", len(missing), len(batch))
	}
}

// all returns the records of every page.
func (f fixture) all(t *testing.T, prefix string, limit int) []sequence.Record {
	t.Helper()
	var all []sequence.Record
	after, more := "", true
	for pages := 0; more; pages++ {
		if pages > 100_000 {
			t.Fatal("the pages have no end")
		}
		var records []sequence.Record
		var err error
		records, after, more, err = f.store.List(t.Context(), prefix, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) > limit {
			t.Fatalf("a page of %d records, at most %d were asked for", len(records), limit)
		}
		all = append(all, records...)
	}
	return all
}

func collect[T, U any](list []T, of func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = of(v)
	}
	return out
}
