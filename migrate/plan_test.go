package migrate_test

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

const plan = `name: room_events
source: {kind: postgres, dsn: "${PG_DSN}", table: room_events, key: [id]}
sink: {kind: dynamodb, table: room_events, region: us-east-1, endpoint: "${ENDPOINT}", key: {partition: room_id, sort: id}}
columns:
  data: {as: data, encode: map}
slots: {by: ulid, width: 1h, order: newest-first, lag: 60s, sweep: 24h}
write: {mode: guarded, version: version}
workers: ${WORKERS}
`

func env(name string) (string, bool) {
	v, ok := map[string]string{"PG_DSN": "postgres://u:secret@h/db", "ENDPOINT": "http://127.0.0.1:1", "WORKERS": "3"}[name]
	return v, ok
}

func TestParsePlanFillsDefaults(t *testing.T) {
	p, err := migrate.ParsePlan([]byte(plan), env)
	if err != nil {
		t.Fatal(err)
	}
	if p.Source.DSN != "postgres://u:secret@h/db" || p.Workers != 3 || p.PageRows != 1000 || time.Duration(p.State.LockTTL) != 20*time.Second ||
		p.State.Prefix != "mgre:" || p.Quarantine.Path != "room_events.quarantine.ndjson" || len(p.Retry.Delays) != 3 {
		t.Errorf("%+v", p)
	}
	if strings.Contains(p.Text, "secret") {
		t.Error("the plan's text holds a secret of the environment")
	}
}

// TestPodsOfAnotherEnvironmentHaveAnotherPlan, unless only secrets and addresses
// differ.
func TestPodsOfAnotherEnvironmentHaveAnotherPlan(t *testing.T) {
	text := []byte(`name: n
source: {kind: postgres, dsn: "${DSN}", table: "${FROM}", key: ["${KEY}"]}
sink: {kind: dynamodb, table: "${TO}", region: "${REGION}", endpoint: "${ENDPOINT}", key: {partition: id}}
columns: {a: {as: "${AS}"}}
slots: {by: ulid, width: "${WIDTH}", to: "${UPTO}"}
write: {mode: "${MODE}", version: version, deletes: none}
state: {url: "${STATE}"}
`)
	values := map[string][2]string{"FROM": {"t", "u"}, "KEY": {"id", "key"}, "TO": {"t", "u"}, "REGION": {"r", "s"}, "ENDPOINT": {"http://u:p@h", "http://u:p@i"},
		"AS": {"b", "c"}, "WIDTH": {"1h", "2h"}, "UPTO": {"2024-10-20T00:00:00Z", "2024-10-21T00:00:00Z"}, "MODE": {"guarded", "absent"}}
	alike := map[string][2]string{"DSN": {"postgres://u:p@h/d", "postgres://v:q@i/d"}, "STATE": {"redis://h", "redis://:p@i"},
		"ENDPOINT": {"http://u:p@h", "http://v:q@h"}, "UPTO": {"2024-10-20T00:00:00Z", "2024-10-20T01:00:00+01:00"}}
	hash := func(changed string, other map[string][2]string) string {
		t.Helper()
		p, err := migrate.ParsePlan(text, func(name string) (string, bool) {
			if name == changed {
				return other[name][1], true
			}
			return cmp.Or(values[name][0], alike[name][0]), true
		})
		if err != nil {
			t.Fatal(err)
		}
		return p.Hash()
	}
	for name := range values {
		if hash(name, values) == hash("", nil) {
			t.Errorf("another %s makes the same plan", name)
		}
	}
	for name := range alike {
		if hash(name, alike) != hash("", nil) {
			t.Errorf("another %s makes another plan", name)
		}
	}
}

func TestCaseOfULIDsIsThePlans(t *testing.T) {
	for text, lower := range map[string]bool{plan: false, strings.Replace(plan, "by: ulid", "by: ulid, case: lower", 1): true} {
		p, err := migrate.ParsePlan([]byte(text), env)
		if err != nil || p.Axis().Lower != lower {
			t.Errorf("lower case is %t, want %t: %v", p.Axis().Lower, lower, err)
		}
	}
}

func TestSpanIsOfTheTableOrThePlan(t *testing.T) {
	hour := func(h int) time.Time { return time.Date(2024, 10, 20, h, 0, 0, 0, time.UTC) }
	from, to := hour(1), hour(5)
	later := hour(9)
	inside := to.Add(-time.Nanosecond)
	p := migrate.Plan{Slots: migrate.SlotPlan{By: migrate.ByTimestamp, Width: migrate.Width{Time: time.Hour}}}
	first := p.Axis().At(hour(0))
	key := func(h int) migrate.Key { return migrate.Key{hour(h).Add(59 * time.Minute).Format(time.RFC3339)} }
	for name, c := range map[string]struct {
		extent   migrate.Extent
		from, to *time.Time
		want     migrate.Span // from the first hour on
	}{
		"empty":              {},
		"of the table":       {extent: migrate.Extent{Min: key(2), Max: key(3)}, want: migrate.Span{Lo: first + 2, Hi: first + 4}},
		"one slot":           {extent: migrate.Extent{Min: key(2), Max: key(2)}, want: migrate.Span{Lo: first + 2, Hi: first + 3}},
		"from the plan":      {extent: migrate.Extent{Min: key(2), Max: key(3)}, from: &from, to: &to, want: migrate.Span{Lo: first + 1, Hi: first + 5}},
		"to inside a slot":   {extent: migrate.Extent{Min: key(2), Max: key(3)}, to: &inside, want: migrate.Span{Lo: first + 2, Hi: first + 5}},
		"to the slot of now": {extent: migrate.Extent{Min: key(2), Max: key(9)}, want: migrate.Span{Lo: first + 2, Hi: first + 5}},
		"all of the future":  {extent: migrate.Extent{Min: key(8), Max: key(9)}, want: migrate.Span{Lo: first + 8, Hi: first + 8}},
		"beyond now":         {extent: migrate.Extent{Min: key(2), Max: key(3)}, to: &later, want: migrate.Span{Lo: first + 2, Hi: first + 9}},
		"beyond the end":     {extent: migrate.Extent{Min: key(0), Max: key(3)}, from: &to, want: migrate.Span{Lo: first + 3, Hi: first + 4}},
		"beyond now, from":   {extent: migrate.Extent{Min: key(0), Max: key(9)}, from: &later, want: migrate.Span{Lo: first + 4, Hi: first + 5}},
		"before the table":   {extent: migrate.Extent{Min: key(6), Max: key(7)}, from: &from, to: &to, want: migrate.Span{Lo: first + 1, Hi: first + 5}},
		"after the table":    {extent: migrate.Extent{Min: key(0), Max: key(0)}, from: &from, to: &to, want: migrate.Span{Lo: first + 1, Hi: first + 5}},
	} {
		p.Slots.From, p.Slots.To = c.from, c.to
		if got, err := p.Span(c.extent, hour(4)); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	if _, err := p.Span(migrate.Extent{Min: migrate.Key{"x"}, Max: key(1)}, hour(4)); !errors.Is(err, migrate.ErrOffAxis) {
		t.Errorf("a key off the axis: %v", err)
	}
}
