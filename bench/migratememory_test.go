package bench

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// discardPlan is for the program itself.
const discardPlan = `name: room_events
source: {kind: postgres, dsn: "${PG_DSN}", table: room_events, key: [id]}
sink: {kind: discard}
slots: {sweep: 0s}
write: {mode: guarded, version: version}
state: {kind: redis, url: "${REDIS_URL}", keeper_interval: 100ms}
`

// peakMemory measures the program's resident memory at two sizes of the table.
func peakMemory(t *testing.T, r *results) {
	few, many := 2_000, 20_000
	if full {
		few, many = 100_000, 1_000_000
	}
	small, large := peak(t, few), peak(t, many)
	r.section("Migrations: memory", fmt.Sprintf("The most that one `tallystick migrate run` of 8 workers has resident (VmHWM), 10,000 rows an hour, into a sink that discards; medians of %d runs.", turns))
	r.table("rows", "MiB", "bar")
	r.row(few, small, "256")
	r.row(many, large, "256, and within 10 % of the other")
	r.atMost(t, "MiB", max(small, large), 256)
	r.atMost(t, "the larger peak over the smaller", max(small, large)/min(small, large), 1.10)
}

// peak returns the median of the peaks of some runs, in MiB.
func peak(t *testing.T, rows int) float64 {
	m := newEvents(t, discardPlan, rows, dense)
	var all []float64
	for range turns {
		p := m.pod("--start")
		all = append(all, p.peak(t))
		p.wait(t, 5*time.Minute)
		m.run(0, "reset", "--yes")
	}
	return median(all)
}

// peak watches a pod until it has ended and returns the most it had resident,
// in MiB.
func (p pod) peak(t *testing.T) float64 {
	t.Helper()
	most := 0.0
	for {
		kb, alive := residentPeak(p.cmd.Process.Pid)
		if !alive {
			break
		}
		most = kb / 1024
		time.Sleep(2 * time.Millisecond)
	}
	if most == 0 {
		t.Error("the pod's memory was never seen")
	}
	return most
}

// residentPeak returns VmHWM of a process in KB, and false once it has ended.
func residentPeak(pid int) (float64, bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kb float64
			_, err := fmt.Sscan(rest, &kb)
			return kb, err == nil
		}
	}
	return 0, false
}
