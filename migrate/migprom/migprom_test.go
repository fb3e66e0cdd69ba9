package migprom_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migprom"
)

const want = `
# HELP tallystick_migrate_generation How often the migration was started.
# TYPE tallystick_migrate_generation gauge
tallystick_migrate_generation 2
# HELP tallystick_migrate_left_seconds Estimated time left, at the least and at the most; absent if nobody can tell.
# TYPE tallystick_migrate_left_seconds gauge
tallystick_migrate_left_seconds{bound="least"} 3
tallystick_migrate_left_seconds{bound="most"} 4
# HELP tallystick_migrate_live_claims Slots that workers hold.
# TYPE tallystick_migrate_live_claims gauge
tallystick_migrate_live_claims 8
# HELP tallystick_migrate_phase 1 for the phase that the run is in, 0 for the others.
# TYPE tallystick_migrate_phase gauge
tallystick_migrate_phase{phase="copy"} 0
tallystick_migrate_phase{phase="done"} 0
tallystick_migrate_phase{phase="outbox"} 0
tallystick_migrate_phase{phase="sweep"} 1
# HELP tallystick_migrate_read_bytes Bytes of data read from the source: of the values as it prints them.
# TYPE tallystick_migrate_read_bytes gauge
tallystick_migrate_read_bytes 50
# HELP tallystick_migrate_read_rows Rows read from the source.
# TYPE tallystick_migrate_read_rows gauge
tallystick_migrate_read_rows 5
# HELP tallystick_migrate_rows Rows dealt with, by outcome; the newest count once more in the sweep.
# TYPE tallystick_migrate_rows gauge
tallystick_migrate_rows{outcome="already_newer"} 7
tallystick_migrate_rows{outcome="already_ours"} 9
tallystick_migrate_rows{outcome="quarantined"} 1
tallystick_migrate_rows{outcome="written"} 6
# HELP tallystick_migrate_slots Slots of the copy, by what they are: finished, running or waiting.
# TYPE tallystick_migrate_slots gauge
tallystick_migrate_slots{is="finished"} 20
tallystick_migrate_slots{is="running"} 8
tallystick_migrate_slots{is="waiting"} 72
# HELP tallystick_migrate_status 1 for the status that the migration has, 0 for the others.
# TYPE tallystick_migrate_status gauge
tallystick_migrate_status{status="FINISHED"} 0
tallystick_migrate_status{status="IN_PROGRESS"} 1
tallystick_migrate_status{status="NOT_STARTED"} 0
tallystick_migrate_status{status="STOPPED"} 0
tallystick_migrate_status{status="TO_START"} 0
tallystick_migrate_status{status="TO_STOP"} 0
# HELP tallystick_migrate_up Whether the state could be read.
# TYPE tallystick_migrate_up gauge
tallystick_migrate_up 1
# HELP tallystick_migrate_verified_clean 1 if the last verification was clean, 0 if not; absent without one.
# TYPE tallystick_migrate_verified_clean gauge
tallystick_migrate_verified_clean 0
`

func collectorOf(r migrate.Report, err error) prometheus.Collector {
	return migprom.New(context.Background(), func(context.Context) (migrate.Report, error) { return r, err })
}

func TestEveryFigureShows(t *testing.T) {
	c := collectorOf(migrate.Report{
		Status: migrate.InProgress, Phase: migrate.PhaseSweep, Generation: 2,
		Slots:   migrate.SlotReport{Total: 100, Finished: 20, Running: 8},
		Rows:    migrate.Counts{Read: 5, Bytes: 50, Written: 6, AlreadyNewer: 7, AlreadyOurs: 9, Quarantined: 1},
		ETA:     []int64{3, 4},
		Verdict: &migrate.Verdict{},
	}, nil)
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	problems, err := testutil.CollectAndLint(c)
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

func TestStateThatCannotBeReadShowsAsDown(t *testing.T) {
	c := collectorOf(migrate.Report{}, errors.New("no Redis"))
	const down = `
# HELP tallystick_migrate_up Whether the state could be read.
# TYPE tallystick_migrate_up gauge
tallystick_migrate_up 0
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(down)); err != nil {
		t.Error(err)
	}
}

func TestItRegisters(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(collectorOf(migrate.Report{}, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
}
