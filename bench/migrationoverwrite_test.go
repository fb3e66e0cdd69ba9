package bench

import (
	"strings"
	"testing"
	"time"
)

// overwritePlan is for rows that never change.
var overwritePlan = strings.NewReplacer(
	"{mode: guarded, version: version}", "{mode: overwrite, deletes: none}",
	"columns:\n", "columns:\n  version: {as: version}\n",
).Replace(eventsPlan)

// TestFaultMigrationOverwrites is TestFaultMigration for rows that never
// change, which are written in batches: no one changes them meanwhile.
func TestFaultMigrationOverwrites(t *testing.T) {
	rows, rounds, every := 3_000, 4, time.Second
	if full {
		rows, rounds, every = 100_000, 16, 4*time.Second
	}
	m := newMigration(t, overwritePlan, rows, 50)
	m.halveBatches()
	brake := m.brake()
	m.proxy.Inject(brake.over(sinkFaults))
	all := m.start(3)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for round := range rounds {
		<-tick.C
		m.disturb(all.replace(m), round)
	}
	brake.release(m)
	all.wait(t)
	m.sound()
}
