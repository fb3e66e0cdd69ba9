package main_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// aged sets back when the state says that the sink was written last.
func (m *migrating) aged(by time.Duration) {
	m.t.Helper()
	opts, err := redis.ParseURL(m.variable("REDIS_URL"))
	if err != nil {
		m.t.Fatal(err)
	}
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	prefix, at := m.variable("PREFIX"), time.Now().Add(-by).UnixMilli()
	millis := regexp.MustCompile(`"at_ms":\d+`)
	for i, line := range rdb.LRange(m.t.Context(), prefix+"ledger", 0, -1).Val() {
		line = millis.ReplaceAllString(line, `"at_ms":`+strconv.FormatInt(at, 10))
		if err := rdb.LSet(m.t.Context(), prefix+"ledger", int64(i), line).Err(); err != nil {
			m.t.Fatal(err)
		}
	}
	if rdb.HExists(m.t.Context(), prefix+"control", "wrote").Val() {
		rdb.HSet(m.t.Context(), prefix+"control", "wrote", strconv.FormatInt(at, 10))
	}
}

// TestCleanupRemovesTombstones once a full verification was clean and nobody can
// write what was deleted any more, and a new run of the same plan brings nothing
// back.
func TestCleanupRemovesTombstones(t *testing.T) {
	t.Parallel()
	m := newNoted(t, stateInRedis+soon)
	const cleanup = "tallystick migrate cleanup -f plan.yaml"
	m.want(cleanup, 1, `^tallystick: .*it is NOT_STARTED; clean up when it is FINISHED`)
	m.exec("DELETE FROM room_events WHERE id = $1", ulidAt(0, 3))
	m.note(ulidAt(0, 3), room(3)+"~"+ulidAt(0, 3), 2)
	m.ended(m.pod("--start"), 0) // the drain buries it

	db := m.items()
	if item := db.get(key(room(3), ulidAt(0, 3))); item["_deleted"] == nil {
		t.Fatalf("there is no tombstone: %v", item)
	}
	m.want(cleanup, 1, "no full verification has come out clean; run `tallystick migrate verify --mode full`")
	m.want("tallystick migrate verify -f plan.yaml --mode samples", 0, `^clean: `)
	m.want(cleanup, 1, `no full verification has come out clean`)
	m.want("tallystick migrate verify -f plan.yaml", 0, `^clean: 49 compared, `+nothingWrong)
	m.want(cleanup, 1, `^tallystick: .*come back in 2[01] minutes`)
	m.aged(19 * time.Minute)
	m.want(cleanup, 1, `^tallystick: .*come back in [12] minutes`)
	m.aged(21 * time.Minute)
	m.want(cleanup, 0, `^removed 1 tombstones\n$`)
	m.want(cleanup+" -o json", 0, `^\{"removed":0\}\n$`)
	if item := db.get(key(room(3), ulidAt(0, 3))); len(item) > 0 {
		t.Errorf("the tombstone is still there: %v", item)
	}
	m.want("tallystick migrate verify -f plan.yaml", 0, `^clean: 49 compared, `+nothingWrong)

	m.want("tallystick migrate start -f plan.yaml", 0, `^room_events: already FINISHED\n$`)
	m.want("tallystick migrate run --start -f plan.yaml", 0, `"status":"FINISHED","generation":1,`)
	m.again(0)
	m.want("tallystick migrate status -f plan.yaml", 0, `(?m)^rows +49 read, 0 written, 0 already newer, 49 already ours, 0 quarantined\n(.*\n)*time left +0 s$`)
	m.want(cleanup, 1, `no full verification has come out clean`)
	m.want("tallystick migrate verify -f plan.yaml", 0, `^clean: 49 compared, `+nothingWrong)
}
