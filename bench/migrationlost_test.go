package bench

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
)

// TestFaultMigrationLosesItsState restarts a Redis that kept nothing: every pod
// ends with exit code 1 and says what to do, one that was paused meanwhile
// too, when it wakes up in the middle of the next run.
func TestFaultMigrationLosesItsState(t *testing.T) {
	rows := 2_000
	if full {
		rows = 20_000
	}
	m := newMigration(t, eventsPlan, rows, 50)
	m.redis = realtest.Redis(t)
	m.setEnv("REDIS_URL", m.redis.URL)
	brake := m.brake()
	m.proxy.Inject(brake.over(sinkFaults))
	all := m.start(3)
	m.awaitPuts(rows / 3)
	paused := all[0].cmd.Process
	paused.Signal(syscall.SIGSTOP)
	m.redis.Kill()
	m.redis.Start()
	for _, p := range all[1:] {
		m.lost(p)
	}
	m.run(0, "reset", "--yes")
	again := m.start(2)
	m.awaitPuts(rows / 3)
	paused.Signal(syscall.SIGCONT)
	m.lost(all[0])
	brake.release(m)
	again.wait(t)
	m.sound()
}

// awaitPuts returns when n more puts have reached the sink.
func (m *migration) awaitPuts(n int) {
	m.t.Helper()
	end := m.proxy.Count("PutItem", "room_events") + n
	m.await(func() bool { return m.proxy.Count("PutItem", "room_events") >= end })
}

// lost expects that a pod ends because the state is lost.
func (m *migration) lost(p pod) {
	m.t.Helper()
	code, last := p.end(time.Minute), p.lastLine(m.t)
	if code != 1 || !strings.Contains(last, "state lost") || !strings.Contains(last, "tallystick migrate reset") {
		m.t.Errorf("a pod whose state is lost: exit %d, and its last line is %s", code, last)
	}
}
