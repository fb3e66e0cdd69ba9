package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migpg"
)

// whole never finds a key to split a slot at.
type whole struct{ *migpg.Source }

func (whole) Split(context.Context, migrate.Range, migrate.Key) (migrate.Key, bool, error) {
	return nil, false, nil
}

// hotHour measures rows that nearly all lie in one hour.
func hotHour(t *testing.T, r *results) {
	rows := 4_000
	if full {
		rows = 100_000
	}
	even, hot := newEvents(t, eventsPlan, rows, spread), newEvents(t, eventsPlan, rows, mostlyHot)
	took := func(m *migration, wrap func(*migpg.Source) migrate.Source) float64 {
		return m.engine(t, m.parse(t, "page_rows: 200\n"), slowSink(), wrap).Seconds()
	}
	evenly, split := took(even, nil), took(hot, nil)
	unsplit := took(hot, func(s *migpg.Source) migrate.Source { return whole{s} })
	r.section("Migrations: a hot hour", fmt.Sprintf("%d rows in 100 hours, 8 workers, into a discarding sink that takes 20 ms for a request of 25, one request under way per worker.", rows))
	r.table("case", "s", "times the even spread", "bar")
	r.row("spread evenly", evenly, 1.0, "")
	r.row("99 % in one hour", split, split/evenly, "1.5")
	r.row("the same, slots never split", unsplit, unsplit/evenly, "4 times the line above")
	r.atMost(t, "a hot hour over an even spread", split/evenly, 1.5)
	r.atMost(t, "4 x the hot hour over the same without splitting", 4*split/unsplit, 1)
}
