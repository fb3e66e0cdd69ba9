package migrate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// TestIdleWorkersGetTheirPartSoon: of a lone slot's 16,000 rows a worker writes
// 25 in 20 ms, so eight need 1.6 s, and as long as it takes until each has its
// part.
func TestIdleWorkersGetTheirPartSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(p *migrate.Plan) { p.Workers = 8 })
		w.sink.Latency = 20 * time.Millisecond
		var first, last time.Time
		w.sink.Fault = func(n int, _ []migrate.Row) migtest.SinkFault {
			if last = time.Now(); n == 1 {
				first = last
			}
			return migtest.SinkFault{}
		}
		w.fill(3, 16_000)
		w.begin()
		w.run(t.Context(), 1)
		w.pods.Wait()
		w.same()
		if took := last.Sub(first); took > 3*time.Second {
			t.Errorf("took %v, at most 3s expected", took)
		}
	})
}
