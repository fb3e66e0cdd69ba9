package migrate_test

import (
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
