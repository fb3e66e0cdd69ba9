package migrate_test

import (
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

func TestCaseOfULIDsIsThePlans(t *testing.T) {
	for text, lower := range map[string]bool{plan: false, strings.Replace(plan, "by: ulid", "by: ulid, case: lower", 1): true} {
		p, err := migrate.ParsePlan([]byte(text), env)
		if err != nil || p.Axis().Lower != lower {
			t.Errorf("lower case is %t, want %t: %v", p.Axis().Lower, lower, err)
		}
	}
}

func TestParsePlanRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		line     int
		field    string
	}{
		"an unknown key":             {"order: newest-first", "oder: newest-first", 6, "oder"},
		"no write mode":              {"mode: guarded, ", "", 0, "write.mode"},
		"guarded without version":    {", version: version", "", 0, "write.version"},
		"absent with deletes":        {"mode: guarded", "mode: absent", 0, "write.deletes"},
		"a variable that is not set": {"${ENDPOINT}", "${NOBODY}", 3, ""},
		"a width that is none":       {"width: 1h", "width: soon", 6, "slots.width"},
		"a type that is wrong":       {"${WORKERS}", "many", 8, ""},
		"no key":                     {", key: [id]}", "}", 0, "source.key"},
		"a kind nobody knows":        {"kind: postgres", "kind: oracle", 0, "source.kind"},
		"text that is no YAML":       {"columns:", "columns: ][", 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := migrate.ParsePlan([]byte(strings.Replace(plan, c.from, c.to, 1)), env)
			e, ok := errors.AsType[*migrate.PlanError](err)
			if !ok || e.Line != c.line || e.Field != c.field || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v", err)
			}
		})
	}
}
