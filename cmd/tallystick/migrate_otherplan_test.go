package main_test

import (
	"strings"
	"testing"
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
