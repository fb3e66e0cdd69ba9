package main_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/internal/realtest"
)

// TestNoCommandShowsOrChangesAnotherMigration: two plans have one prefix of
// Redis.
func TestNoCommandShowsOrChangesAnotherMigration(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInRedis, 1, 10)
	m.ended(m.pod("--start"), 0)
	m.write("other.yaml", strings.Replace(planText, "name: room_events", "name: other", 1)+stateInRedis)
	for _, line := range []string{"status", "report", "report --quarantine", "run", "run --start", "run --max-rows 1", "start", "stop",
		"verify --mode samples", "replay", "cleanup", "reset --yes"} {
		m.want("tallystick migrate -f other.yaml "+line, 1, `another plan: the state is of "room_events", this plan is "other".*state\.prefix`)
	}
	m.want("tallystick migrate -f other.yaml plan", 1, `(?s)refusal, line \d+: state: the state is of "room_events".*state\.prefix.*is refused: 1 to mend`)
	m.want("tallystick migrate -f plan.yaml status", 0, `FINISHED, generation 1`)
}

// TestPodsOfAnotherEnvironmentAreRefused: they would copy their part into
// another table.
func TestPodsOfAnotherEnvironmentAreRefused(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInRedis, 2, 100)
	m.ended(m.pod("--start"), 0)
	other := realtest.TableName()
	m.env = append(slices.DeleteFunc(m.env, func(v string) bool { return strings.HasPrefix(v, "TABLE=") }), "TABLE="+other)
	m.want("tallystick migrate -f plan.yaml run", 1, `another plan: with the environment it has "sink.table: `+other+`" here and "sink.table: `+m.table+`" in the state`)
}
