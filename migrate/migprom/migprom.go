// Package migprom shows a migration as Prometheus metrics.
//
//	registry.MustRegister(migprom.New(ctx, migration.Report))
//
// All pods show the same figures: they are of the migration, not of the pod, so
// take the greatest, not the sum. There is no label per slot or worker.
package migprom

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tallystick/tallystick/migrate"
)

const prefix = "tallystick_migrate_"

// reportTimeout bounds what a scrape waits for the state.
const reportTimeout = 5 * time.Second

// New returns a collector of what report returns, which is called once per
// scrape and not after ctx has ended; see [migrate.Migration.Report]. When it
// fails, tallystick_migrate_up is 0 and the other metrics are absent.
func New(ctx context.Context, report func(context.Context) (migrate.Report, error)) prometheus.Collector {
	return collector{ctx, report}
}

type collector struct {
	ctx    context.Context // the process's
	report func(context.Context) (migrate.Report, error)
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

var (
	up          = desc("up", "Whether the state could be read.")
	status      = desc("status", "1 for the status that the migration has, 0 for the others.", "status")
	phase       = desc("phase", "1 for the phase that the run is in, 0 for the others.", "phase")
	generation  = desc("generation", "How often the migration was started.")
	slots       = desc("slots", "Slots of the copy, by what they are: finished, running or waiting.", "is")
	rows        = desc("rows", "Rows dealt with, by outcome; the newest count once more in the sweep.", "outcome")
	read        = desc("read_rows", "Rows read from the source.")
	readBytes   = desc("read_bytes", "Bytes of data read from the source: of the values as it prints them.")
	claims      = desc("live_claims", "Slots that workers hold.")
	left        = desc("left_seconds", "Estimated time left, at the least and at the most; absent if nobody can tell.", "bound")
	verified    = desc("verified_clean", "1 if the last verification was clean, 0 if not; absent without one.")
	description = []*prometheus.Desc{up, status, phase, generation, slots, rows, read, readBytes, claims, left, verified}
)

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range description {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(c.ctx, reportTimeout)
	defer cancel()
	r, err := c.report(ctx)
	gauge(ch, up, truth(err == nil))
	if err != nil {
		return
	}
	collectPlace(ch, r)
	collectSlots(ch, r)
	collectRows(ch, r.Rows)
	if len(r.ETA) == 2 {
		gauge(ch, left, float64(r.ETA[0]), "least")
		gauge(ch, left, float64(r.ETA[1]), "most")
	}
	if r.Verdict != nil {
		gauge(ch, verified, truth(r.Verdict.Clean))
	}
}

// collectPlace shows where the migration is.
func collectPlace(ch chan<- prometheus.Metric, r migrate.Report) {
	for _, s := range []migrate.Status{migrate.NotStarted, migrate.ToStart, migrate.InProgress, migrate.ToStop, migrate.Stopped, migrate.Finished} {
		gauge(ch, status, truth(r.Status == s), string(s))
	}
	for _, p := range []migrate.Phase{migrate.PhaseCopy, migrate.PhaseSweep, migrate.PhaseOutbox, migrate.PhaseDone} {
		gauge(ch, phase, truth(r.Phase == p), string(p))
	}
	gauge(ch, generation, float64(r.Generation))
}

func collectSlots(ch chan<- prometheus.Metric, r migrate.Report) {
	gauge(ch, slots, float64(r.Slots.Finished), "finished")
	gauge(ch, slots, float64(r.Slots.Running), "running")
	gauge(ch, slots, float64(max(0, r.Slots.Total-r.Slots.Finished-r.Slots.Running)), "waiting")
	gauge(ch, claims, float64(r.Slots.Running))
}

func collectRows(ch chan<- prometheus.Metric, c migrate.Counts) {
	gauge(ch, read, float64(c.Read))
	gauge(ch, readBytes, float64(c.Bytes))
	gauge(ch, rows, float64(c.Written), "written")
	gauge(ch, rows, float64(c.AlreadyNewer), "already_newer")
	gauge(ch, rows, float64(c.AlreadyOurs), "already_ours")
	gauge(ch, rows, float64(c.Quarantined), "quarantined")
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
