package main_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// soon makes a verification look again at once.
const soon = "verify: {recheck: [20ms, 50ms, 100ms]}\n"

const nothingWrong = `0 missing, 0 different, 0 extra, 0 unsettled, 0 quarantined\n$`

// room returns the room of the nth event of an hour.
func room(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n%7) }

// finished returns a table that is copied.
func finished(t *testing.T, plan string, hours, rows int) *migrating {
	t.Helper()
	m := newMigrating(t, plan, hours, rows)
	m.ended(m.pod("--start"), 0)
	return m
}

func TestVerifyNamesWhatIsChangedBehindItsBack(t *testing.T) {
	t.Parallel()
	m := finished(t, stateInRedis+soon, 2, 300)
	verify := "tallystick migrate verify -f plan.yaml --mode full"
	m.want(verify, 0, `^clean: 600 compared, `+nothingWrong)

	db := m.items()
	changed, deleted := db.get(key(room(9), ulidAt(0, 9))), key(room(250), ulidAt(1, 250))
	changed["data"] = str("something else")
	db.put(changed)
	db.delete(deleted)
	added := key(room(0), ulidAt(5, 0))
	nobodys := key(room(0), ulidAt(5, 0))
	nobodys["_version"] = num("1")
	db.put(nobodys)

	three := fmt.Sprintf(`^missing %s\ndifferent %s\nextra %s\ndifferent: 600 compared, 1 missing, 1 different, 1 extra, 0 unsettled, 0 quarantined\n`,
		ulidAt(1, 250), ulidAt(0, 9), ulidAt(5, 0))
	m.want(verify, 3, three+`$`)
	m.want("tallystick migrate status -f plan.yaml", 0, `verdict +different, full, 600 compared`)
	m.want(verify+" --repair", 3, three+`mended; verify again\n$`)
	m.want(verify, 0, `^clean: 600 compared, `+nothingWrong)
	if item := db.get(added); len(item) != 4 || item["_deleted"] == nil {
		t.Errorf("what was extra is now %v", item)
	}
	m.want("tallystick migrate status -f plan.yaml", 0, `verdict +clean, full, 600 compared`)
}

// TestVerifyFindsItemsThatAreNoRows: one left where the row's partition was
// before, one of another program, one whose key is none of the column's type.
func TestVerifyFindsItemsThatAreNoRows(t *testing.T) {
	t.Parallel()
	m := finished(t, stateInFile+soon, 1, 50)
	db := m.items()
	stale := db.get(key(room(3), ulidAt(0, 3)))
	stale["room_id"] = str("before")
	db.put(stale)
	db.put(key("room", "not a ULID \\ \" {"))
	m.want("tallystick migrate verify -f plan.yaml", 3, fmt.Sprintf(`(?m)^extra %s$`, ulidAt(0, 3)))
	m.want("tallystick migrate verify -f plan.yaml --repair", 3, `(?m)^extra not\+a\+ULID.*$`)
	m.want("tallystick migrate verify -f plan.yaml", 0, `^clean: 50 compared, `+nothingWrong)
	if db.get(key(room(3), ulidAt(0, 3)))["_deleted"] != nil {
		t.Error("the repair buried the row's own item")
	}
}

// TestRepairBuriesARowOfVersionZero: 0 is a version like any other.
func TestRepairBuriesARowOfVersionZero(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInFile+soon, 1, 50)
	m.exec("UPDATE room_events SET version = 0")
	m.ended(m.pod("--start"), 0)
	m.exec("DELETE FROM room_events WHERE id = $1", ulidAt(0, 3)) // behind the double-writer's back
	m.want("tallystick migrate verify -f plan.yaml --repair", 3, `mended; verify again\n$`)
	m.want("tallystick migrate verify -f plan.yaml", 0, `^clean: 49 compared, `+nothingWrong)
}

// TestRepairSaysWhatItCannotMend: a tombstone that is as new as the row.
func TestRepairSaysWhatItCannotMend(t *testing.T) {
	t.Parallel()
	m := finished(t, stateInFile+soon, 1, 50)
	buried := key(room(3), ulidAt(0, 3))
	buried["_version"], buried["_deleted"] = num("1"), yes()
	m.items().put(buried)
	m.items().delete(key(room(4), ulidAt(0, 4)))
	m.want("tallystick migrate verify -f plan.yaml --repair", 3,
		fmt.Sprintf(`(?m)^not mended %s: the sink has a newer item or a tombstone in its place\n1 not mended; verify again\n$`, ulidAt(0, 3)))
	m.want("tallystick migrate verify -f plan.yaml --repair -o json", 3, fmt.Sprintf(`"missing":\["%s"\].*"unmended":\[\{"key":"%[1]s","reason":`, ulidAt(0, 3)))
}

func TestVerifyCountsBothSides(t *testing.T) {
	t.Parallel()
	m := finished(t, stateInFile, 1, 50)
	m.items().delete(key(room(3), ulidAt(0, 3)))
	m.want("tallystick migrate verify -f plan.yaml --mode counts", 3, `^different: 50 rows in the source, 49 in the sink, 0 quarantined\n$`)
	out := m.want("tallystick migrate verify -f plan.yaml --mode counts -o json", 3, `^\{`)
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]any{"verdict": "different", "compared": 50., "source_rows": 50., "sink_rows": 49., "quarantined": 0.} {
		if v[k] != want {
			t.Errorf("%s is %v, want %v", k, v[k], want)
		}
	}
	for _, k := range []string{"missing", "different", "extra", "unsettled"} {
		if l, ok := v[k].([]any); !ok || len(l) != 0 {
			t.Errorf("%s is %v", k, v[k])
		}
	}
	m.want("tallystick migrate verify -f plan.yaml --mode counts --only 20241020.00", 2, `looks at the whole`)
	m.want("tallystick migrate verify -f plan.yaml --mode samples --restart", 2, `--restart is of a full verification`)
}

// TestVerifyIsCleanWhileItIsWrittenTo: a double-writer inserts, updates and
// deletes on both sides the whole time, the sink 30 ms after the source. Only on
// a machine that stands still is the last look waited for.
func TestVerifyIsCleanWhileItIsWrittenTo(t *testing.T) {
	t.Parallel()
	m := finished(t, stateInRedis+"verify: {recheck: [100ms, 500ms, 5s]}\n", 2, 300)
	writer := &doubleWriter{m: m, items: m.items(), versions: map[int]int{}}
	for range 3 {
		p := m.command("verify")
		for running := true; running; {
			select {
			case <-p.done:
				running = false
			default:
				writer.once()
			}
		}
		m.ended(p, 0)
		if out := p.out.String(); !regexp.MustCompile(`^clean: 6\d\d compared, ` + nothingWrong).MatchString(out) {
			t.Errorf("%s%s", out, p.err)
		}
	}
	if writer.writes < 10 {
		t.Errorf("only %d writes went on beside it", writer.writes)
	}
}

// A doubleWriter writes both sides, as an application does.
type doubleWriter struct {
	m        *migrating
	items    items
	versions map[int]int // by the number of the event of the third hour
	writes   int
}

func (w *doubleWriter) once() {
	n := rand.IntN(40)
	w.versions[n]++
	version := w.versions[n]
	id, item := ulidAt(2, n), key(room(n), ulidAt(2, n))
	item["_version"] = num(fmt.Sprint(version))
	pause := func() { time.Sleep(30 * time.Millisecond) }
	if rand.IntN(3) == 0 {
		w.m.exec("DELETE FROM room_events WHERE id = $1", id)
		pause()
		item["_deleted"] = yes()
	} else {
		w.m.exec(`INSERT INTO room_events VALUES ($1, $2, '{"a": "b"}', $3) ON CONFLICT (id) DO UPDATE SET version = $3`, id, room(n), version)
		pause()
		item["version"], item["data"] = num(fmt.Sprint(version)), tree("a", "b")
	}
	w.items.put(item)
	w.writes++
}

// TestAKilledVerifyGoesOn: whichever state keeps the mark. It is killed while
// it waits to read again what differs.
func TestAKilledVerifyGoesOn(t *testing.T) {
	for name, state := range map[string]string{"file": stateInFile, "Redis": stateInRedis} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := finished(t, state+"verify: {recheck: [1s, 4s]}\n", 2, 300)
			m.items().delete(key(room(7), ulidAt(0, 7)))
			p := m.command("verify")
			eventually(t, "everything is compared", func() bool { return strings.Contains(m.mark(), `"scanned":true`) })
			p.cmd.Process.Kill()
			<-p.done
			out := m.want("tallystick migrate verify -f plan.yaml -o json", 3, `^went on from 100 %: 600 rows were compared since 2\S+Z; --restart begins anew\n\{`)
			var v struct {
				Compared, Resumed int
				Missing           []string
			}
			if err := json.Unmarshal([]byte(out[strings.Index(out, "\n"):]), &v); err != nil {
				t.Fatal(err)
			}
			if v.Compared != 600 || v.Resumed != 600 || !slices.Equal(v.Missing, []string{ulidAt(0, 7)}) {
				t.Errorf("verdict %+v", v)
			}
			if at := m.mark(); strings.Contains(at, `"scanned":true`) && name == "Redis" {
				t.Errorf("after the verdict the mark is %s", at)
			}
		})
	}
}

// mark returns text that has the mark of a verification, if there is one.
func (m *migrating) mark() string {
	m.t.Helper()
	if file, err := os.ReadFile(filepath.Join(m.dir, "room_events.state")); err == nil {
		return string(file)
	}
	opts, err := redis.ParseURL(m.variable("REDIS_URL"))
	if err != nil {
		m.t.Fatal(err)
	}
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	return rdb.HGet(m.t.Context(), m.variable("PREFIX")+"mark", "mark").Val()
}
