package migrate_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// TestSlowSinkIsNoStall: one page takes longer than the watchdog waits, because
// the sink is slow or the plan limits what is written; as long as rows are
// acknowledged, that is progress.
func TestSlowSinkIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(p *migrate.Plan) { p.State.StallTimeout = migrate.Duration(time.Minute) })
		w.sink.Latency, w.sink.Batch = 5*time.Second, 2 // a page of 50 takes 125 s
		w.fill(0, 100)
		w.fill(1, 100)
		w.finishes(t.Context(), time.Hour)
		w.same()
		if c := w.sink.Counts(); c.Written > 200 || c.AlreadyOurs > 10 {
			t.Errorf("of 200 rows %+v: they are written over and over", c)
		}
	})
}

// TestThrottledPageGoesOn: each request has a part of its rows done. Those are
// not written again, however many requests the page takes.
func TestThrottledPageGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.sink.Batch = 50
		w.sink.Fault = func(int, []migrate.Row) migtest.SinkFault {
			return migtest.SinkFault{Err: migrate.ErrTransient, Done: 5}
		}
		w.fill(0, 100)
		w.finishes(t.Context(), time.Hour)
		w.same()
		if c := w.sink.Counts(); c.Written != 100 || c.AlreadyOurs > 0 {
			t.Errorf("of 100 rows %+v: some were written again", c)
		}
	})
}

// TestALineOfThePodSaysWhyRowsAreNotAcknowledged, as that its credentials have
// expired.
func TestALineOfThePodSaysWhyRowsAreNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.sink.Fault = func(n int, _ []migrate.Row) migtest.SinkFault {
			if n > 20 {
				return migtest.SinkFault{}
			}
			return migtest.SinkFault{Err: fmt.Errorf("the token has expired: %w", migrate.ErrTransient)}
		}
		w.fill(0, 100)
		w.begin()
		var log bytes.Buffer
		m := migrate.New(w.plan, w.source, w.sink, w.state.Pod(), migrate.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := m.Run(t.Context()); err != nil || !strings.Contains(log.String(), "50 rows are not acknowledged: write: the token has expired") {
			t.Errorf("%v, log %s", err, &log)
		}
		w.same()
	})
}
