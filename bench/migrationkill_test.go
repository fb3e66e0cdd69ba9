package bench

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
)

// TestFaultMigrationKillsCostLittle kills pods in the middle of their work and
// counts the items that reach the sink: beside each row once, a kill costs no
// more than a page for each of the slots that the pod had.
func TestFaultMigrationKillsCostLittle(t *testing.T) {
	cheap := func(plan string, edits ...string) string {
		return strings.NewReplacer(append(edits, "sweep: 24h", "sweep: 0s", "lock_ttl: 2s", "lock_ttl: 3s", "page_rows: 200", "page_rows: 20")...).Replace(plan)
	}
	for _, c := range []struct {
		name, plan       string
		pods, rows, most int // rows in the small run and at full size
	}{
		{"guarded", cheap(eventsPlan), 2, 2_000, 20_000},
		{"overwrite", cheap(overwritePlan), 2, 3_000, 100_000},
		{"file", cheap(eventsPlan, `{kind: redis, url: "${REDIS_URL}", lock_ttl: 2s,`, "{kind: file, lock_ttl: 2s,"), 1, 2_000, 20_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, kills := c.rows, 4
			if full {
				rows, kills = c.most, 20
			}
			m := newMigration(t, c.plan, rows, 10)
			brake, items := m.brake(), new(atomic.Int64)
			m.proxy.Inject(brake.over(countItems(items)))
			all := m.start(c.pods)
			for n := range kills {
				m.await(func() bool { return int(items.Load()) > rows*(n+1)/(kills+1) })
				all.replace(m)
			}
			if c.name == "file" {
				m.await(func() bool { return strings.Contains(all[0].tail(t), `"msg":"working"`) })
				m.refusesSecondProcess()
				brake.released.Store(true)
			} else {
				brake.release(m)
			}
			all.wait(t)
			const workers, pageRows = 4, 20
			put, bound := int(items.Load()), rows+1+kills*workers*pageRows
			t.Logf("%d rows, %d kills: %d items were put, at most %d allowed", rows+1, kills, put, bound)
			if put <= rows || put > bound {
				t.Errorf("%d items were put, want %d to %d", put, rows+1, bound)
			}
			m.sound()
		})
	}
}

// countItems is a rule that counts the items that reach the sink.
func countItems(items *atomic.Int64) rule {
	return func(r realtest.DynamoRequest) realtest.Fault {
		switch r.Operation {
		case "PutItem":
			items.Add(1)
		case "BatchWriteItem":
			items.Add(int64(bytes.Count(r.Body, []byte(`"PutRequest"`))))
		}
		return realtest.Fault{}
	}
}

// await returns when done does.
func (m *migration) await(done func() bool) {
	m.t.Helper()
	for limit := time.Now().Add(10 * time.Minute); !done(); time.Sleep(time.Millisecond + rand.N(time.Millisecond)) {
		if time.Now().After(limit) {
			m.t.Fatal("the copy makes no progress")
		}
	}
}

// refusesSecondProcess starts another pod on the file that a pod has open.
func (m *migration) refusesSecondProcess() {
	m.t.Helper()
	out := m.run(1, "run")
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, "in use by another process") {
		m.t.Errorf("a second process says:\n%s", out)
	}
}
