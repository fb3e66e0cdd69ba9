package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
)

// TestFaultMigration copies a table with three pods while the pods are killed
// and paused, PostgreSQL and Redis restarted, the migration stopped and
// started, the sink throttles, loses replies and does half of batches, and an
// application changes rows on both sides the whole time, which is killed over
// and over. Then every row is the same on both sides.
func TestFaultMigration(t *testing.T) {
	rows, rounds, every := 2_000, 4, 1200*time.Millisecond
	if full {
		rows, rounds, every = 50_000, 20, 4*time.Second
	}
	m := newMigration(t, eventsPlan, rows, 50)
	m.halveBatches()
	brake := m.brake()
	m.proxy.Inject(brake.over(sinkFaults))
	m.run(0, "plan")
	all := m.start(3)
	app := m.application(eventsPlan, sinkFaults)
	ctx, stop := context.WithCancel(t.Context())
	var dying sync.WaitGroup
	dying.Go(func() { app.dieOften(ctx, every/2) })
	tick := time.NewTicker(every)
	defer tick.Stop()
	for round := range rounds {
		<-tick.C
		m.disturb(all.replace(m), round)
	}
	stop()
	dying.Wait()
	brake.release(m)
	all.wait(t)
	m.sound()
	t.Logf("%d changes meanwhile, %d kills of pods, %d of the double-writer, which left up to %d notes at a time", m.changes(), rounds, app.kills, app.left)
	if app.left == 0 {
		t.Error("no kill of the double-writer left a note: nothing was shown")
	}
}

// disturb does one thing to a pod or to the servers.
func (m *migration) disturb(other pod, round int) {
	m.t.Helper()
	switch round % 4 {
	case 0:
		other.pause(4 * time.Second) // beyond its locks' time to live
	case 1:
		m.source.Kill()
		m.source.Start()
	case 2:
		m.redis.Kill()
		m.redis.Start()
	case 3:
		m.run(0, "stop", "--wait", "60s")
		m.run(0, "start")
	}
}

// A migrationStatus is what `migrate status -o json` says.
type migrationStatus struct {
	Status, Phase string
	Rows          map[string]int64
}

func (m *migration) status() (s migrationStatus) {
	m.t.Helper()
	if err := json.Unmarshal([]byte(m.run(0, "status", "-o", "json")), &s); err != nil {
		m.t.Error(err)
	}
	return s
}

// sound checks a migration that its pods call finished: it is, it left no note,
// its own verification is clean while the sink goes on being faulty, and both
// tables are equal.
func (m *migration) sound() {
	m.t.Helper()
	s := m.status()
	if s.Status != "FINISHED" {
		m.t.Errorf("status %+v", s)
	}
	if n, err := m.notes(); err != nil || n > 0 {
		m.t.Errorf("%d notes of double-writers are left, %v", n, err)
	}
	out := m.run(0, "verify", "--mode", "full", "-o", "json")
	m.t.Logf("%d rows, %v; verdict %s", m.same(), s.Rows, strings.TrimSpace(out))
}

// A rule says what happens to a request of the sink.
type rule func(realtest.DynamoRequest) realtest.Fault

// sinkFaults throttles, loses and delays some of the sink's requests.
func sinkFaults(r realtest.DynamoRequest) realtest.Fault {
	switch p := rand.IntN(200); {
	case p < 2:
		return realtest.Fault{Action: realtest.LoseReply}
	case p < 4:
		return realtest.Fault{Action: realtest.ThrottleOnDemand}
	case p < 5:
		return realtest.Fault{Action: realtest.ServerErrorAfterWrite}
	case p < 8:
		return realtest.Fault{After: time.Duration(rand.IntN(50)) * time.Millisecond}
	}
	return realtest.Fault{}
}

// halveBatches has one batch in four of pods and commands done in part, or not
// at all.
func (m *migration) halveBatches() {
	m.t.Helper()
	m.setEnv("DYNAMODB_ENDPOINT", realtest.PartialBatches(m.t, m.proxy.URL, func(realtest.DynamoRequest) int {
		if rand.IntN(4) > 0 {
			return -1
		}
		return rand.IntN(25)
	}))
}

// A brake keeps a migration in its copy, however fast that is: the oldest row,
// whose slot comes last, is refused for now until the brake is released.
type brake struct {
	id       []byte
	released atomic.Bool
}

// brake adds that row.
func (m *migration) brake() *brake {
	m.t.Helper()
	id := eventID(-3, 50)
	m.exec("insert into room_events values ($1, $2, '{}', 1)", id, m.rooms[0])
	return &brake{id: []byte(id)}
}

// release lets the migration go on. It checks that it has not finished before.
func (b *brake) release(m *migration) {
	m.t.Helper()
	if s := m.status(); s.Phase != "copy" {
		m.t.Errorf("after the last fault the migration is %s in phase %s: nothing was shown", s.Status, s.Phase)
	}
	b.released.Store(true)
}

// over returns next with the brake on top.
func (b *brake) over(next rule) rule {
	return func(r realtest.DynamoRequest) realtest.Fault {
		if !b.released.Load() && r.Writes() && bytes.Contains(r.Body, b.id) {
			return realtest.Fault{Action: realtest.Unavailable}
		}
		return next(r)
	}
}
