package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/migrate"
)

const spanHours = 100 // that rows lie in, the last of which ended a day ago

// spread returns when the n-th of some rows was made, if they were made evenly
// over the hours.
func spread(n, rows int) time.Duration {
	return time.Duration(float64(n) / float64(rows) * float64(spanHours*time.Hour))
}

// mostlyHot is spread, but for 99 % that were made in the hour in the middle.
func mostlyHot(n, rows int) time.Duration {
	const middle = spanHours / 2 * time.Hour
	switch calm := rows / 200; { // on either side
	case n < calm:
		return time.Duration(n) * middle / time.Duration(calm)
	case n >= rows-calm:
		return middle + time.Hour + time.Duration(n-rows+calm)*(middle-time.Hour)/time.Duration(calm)
	default:
		return middle + time.Duration(n-calm)*time.Hour/time.Duration(rows-2*calm)
	}
}

// dense has 10,000 made in each hour, however many there are.
func dense(n, _ int) time.Duration { return time.Duration(n) * time.Hour / 10_000 }

// newEvents returns a migration whose table has rows in the order in which an
// application inserts them: that of their ids.
func newEvents(t *testing.T, plan string, rows int, at func(n, rows int) time.Duration) *migration {
	t.Helper()
	m := newMigration(t, plan, 0, 1)
	begin := time.Now().Truncate(time.Hour).Add(-24*time.Hour - spanHours*time.Hour)
	axis := migrate.Axis{By: migrate.ByULID, Width: 1}
	_, err := m.pool.CopyFrom(t.Context(), pgx.Identifier{"room_events"}, []string{"id", "room_id", "data", "version"},
		pgx.CopyFromSlice(rows, func(n int) ([]any, error) {
			id := axis.Bound(begin.Add(at(n, rows)).UnixMilli())[0][:10] + fmt.Sprintf("%016d", n)
			data := fmt.Sprintf(`{"n": %d, "big": 9007199254740993, "text": "%s"}`, n, strings.Repeat("x", rand.IntN(400)))
			return []any{id, m.rooms[rand.IntN(len(m.rooms))], data, int64(1)}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	m.exec("vacuum analyze room_events")
	return m
}
