package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

var (
	instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	hash    = regexp.MustCompile(`(plan +room_events |"plan":")[0-9a-f]{16}`)
	leader  = regexp.MustCompile(`(keeper +|"keeper":")[\w.-]+`)
)

// TestMigrationTranscripts is like TestTranscripts, beside a table of three
// hours of 120 rows.
func TestMigrationTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/migrations/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newMigrating(t, stateInFile, 3, 120).replay(string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s differs:\n%s", file, firstDifference(string(want), got))
			}
		})
	}
}

// replay runs the commands of a transcript and returns it anew; lines that
// begin with "> " are SQL for the source.
func (m *migrating) replay(transcript string) string {
	m.t.Helper()
	var b strings.Builder
	for line := range strings.Lines(transcript) {
		switch {
		case strings.HasPrefix(line, "# "):
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			b.WriteString(line)
		case strings.HasPrefix(line, "> "):
			b.WriteString(line)
			m.exec(strings.TrimPrefix(line, "> "))
		case strings.HasPrefix(line, "$ "):
			b.WriteString(line)
			out, code := m.shell(strings.TrimPrefix(line, "$ "))
			b.WriteString(m.steady(out))
			if code != 0 {
				fmt.Fprintf(&b, "[exit %d]\n", code)
			}
		}
	}
	return b.String()
}

// steady replaces what differs from run to run.
func (m *migrating) steady(out string) string {
	out = instant.ReplaceAllString(out, "TIME")
	out = hash.ReplaceAllString(out, "${1}HASH") // of the table's name, too
	out = leader.ReplaceAllString(out, "${1}POD")
	return strings.NewReplacer(m.table, "TABLE", m.dir, "DIR").Replace(out)
}

func TestKilledPodsLoseNothing(t *testing.T) {
	for name, state := range map[string]string{"file": stateInFile, "Redis": stateInRedis} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMigrating(t, state, 4, 1500)
			p := m.pod("--start")
			p.out.wait(t, p.done, regexp.MustCompile(`"read":[1-9]`))
			p.cmd.Process.Kill()
			<-p.done
			m.ended(m.pod(), 0)
			m.want("tallystick migrate verify -f plan.yaml --mode full", 0, `^clean: 6000 compared, 0 missing, 0 different, 0 extra, 0 unsettled, 0 quarantined\n$`)
		})
	}
}

func TestSIGTERMStopsOnlyThisPod(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInRedis, 4, 1500)
	one, two := m.pod("--start"), m.pod()
	two.out.wait(t, two.done, regexp.MustCompile(`"read":[1-9]`))
	one.cmd.Process.Signal(syscall.SIGTERM)
	m.ended(one, 0)
	m.ended(two, 0)
	m.want("tallystick migrate status -f plan.yaml", 0, `status +FINISHED, generation 1`)
}

func TestStopWaitsUntilAllPodsHaveStopped(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInRedis, 4, 1500)
	p := m.pod("--start")
	p.out.wait(t, p.done, regexp.MustCompile(`"read":[1-9]`))
	m.want("tallystick migrate stop -f plan.yaml --wait 20s", 0, `^room_events: STOPPED\n$`)
	m.want("tallystick migrate stop -f plan.yaml", 0, `^room_events: already STOPPED\n$`)
	m.want("tallystick migrate start -f plan.yaml -o json", 0, `^\{"already":false,"name":"room_events","status":"TO_START"\}\n$`)
	m.ended(p, 0)
	m.want("tallystick migrate status -f plan.yaml", 0, `FINISHED, generation 2`)
}

func TestLinesOfProgressAreTheStatus(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInFile, 2, 100)
	p := m.pod("--start")
	m.ended(p, 0)
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	var last struct {
		Status string
		Rows   struct{ Read, Written int }
		Slots  struct{ Total, Finished int }
		ETA    []int    `json:"eta_s"`
		Rate   *float64 `json:"rows_per_second"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if last.Status != "FINISHED" || last.Rows.Written != 200 || last.Slots.Finished != 2 || last.ETA == nil || last.Rate == nil {
		t.Errorf("%s", lines[len(lines)-1])
	}
}

func TestOneProcessHasTheFile(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInFile, 1, 10)
	p := m.pod()
	p.out.wait(t, p.done, regexp.MustCompile(`NOT_STARTED`))
	out := m.want("tallystick migrate status -f plan.yaml", 1, `room_events.state.* in use by another process`)
	if strings.Count(out, "\n") != 1 {
		t.Error(out)
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	m.ended(p, 0)
}

func TestPodServesMetricsAndTheService(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInFile, 1, 10)
	p := m.pod("--listen", "127.0.0.1:0")
	url := p.err.wait(t, p.done, regexp.MustCompile(`"url":"([^"]+)"`))[1]
	if got := get(t, url+"/readyz") + get(t, url+"/livez"); got != "ok\nok\n" {
		t.Error(got)
	}
	if got := get(t, url+"/metrics"); !strings.Contains(got, `tallystick_migrate_status{status="NOT_STARTED"} 1`) {
		t.Error(got)
	}
	if res, got := post(t, http.DefaultClient, url+"/tallystick.migrate.v1.MigrationService/Start", "", "{}"); res.StatusCode != 200 || got != `{"status":"TO_START"}` {
		t.Error(got)
	}
	m.ended(p, 0)
}

// TestReplayOverTheNetworkKeepsTheFileRight: the pod that was asked lists what
// is left, and says where.
func TestReplayOverTheNetworkKeepsTheFileRight(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInFile+"limits: {read_rows_per_second: 50}\n", 1, 1000)
	bad := ulidAt(0, 999)
	m.exec("UPDATE room_events SET data = jsonb_build_object('text', repeat('x', 500000)) WHERE id = $1", bad)
	p := m.pod("--start", "--listen", "127.0.0.1:0")
	url := p.err.wait(t, p.done, regexp.MustCompile(`"url":"([^"]+)"`))[1]
	p.out.wait(t, p.done, regexp.MustCompile(`"quarantined":1`))
	for _, c := range []struct{ data, answer, log, list string }{
		{"data", `{"settled":"0","left":"1"}`, `"msg":"replayed","settled":0,"left":1,"file":"room_events.quarantine.ndjson"`, bad},
		{"'{}'", `{"settled":"1","left":"0"}`, `"msg":"replayed","settled":1,"left":0,"file":"room_events.quarantine.ndjson"`, ""},
	} {
		m.exec("UPDATE room_events SET data = "+c.data+" WHERE id = $1", bad)
		if res, got := post(t, http.DefaultClient, url+"/tallystick.migrate.v1.MigrationService/Replay", "", "{}"); res.StatusCode != 200 || got != c.answer {
			t.Error(got)
		}
		p.err.wait(t, p.done, regexp.MustCompile(c.log))
		b, err := os.ReadFile(filepath.Join(m.dir, "room_events.quarantine.ndjson"))
		if err != nil || c.list == "" && len(b) > 0 || !strings.Contains(string(b), c.list) {
			t.Errorf("%s, %v", b, err)
		}
	}
}

func TestPodIsGuardedBeyondLoopback(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInFile, 1, 10)
	m.want("tallystick migrate run -f plan.yaml --listen :0", 2, `beyond the loopback interface and needs TLS and tokens`)
	m.want("tallystick token create --scope lease --data d", 0, `.`)
	p := m.pod("--listen", "127.0.0.1:0", "--data", "d")
	url := p.err.wait(t, p.done, regexp.MustCompile(`"url":"([^"]+)"`))[1]
	if res, got := post(t, http.DefaultClient, url+"/tallystick.migrate.v1.MigrationService/Status", "", "{}"); res.StatusCode != 401 {
		t.Errorf("without a token: %d %s", res.StatusCode, got)
	}
	p.err.wait(t, p.done, regexp.MustCompile(`"msg":"refused","reason":"no token was given"`))
}

// TestPodFindsItsPortTakenBeforeItOpensAnything: a state in a file would be
// made, and locked, by a pod that cannot serve.
func TestPodFindsItsPortTakenBeforeItOpensAnything(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	m := newMigrating(t, stateInFile, 1, 10)
	m.want("tallystick migrate run --start -f plan.yaml --listen "+taken.Addr().String(), 1, `^tallystick: cannot listen on 127.0.0.1:\d+: address already in use \(stop the process that has it.*\)\n$`)
	if _, err := os.Stat(filepath.Join(m.dir, "room_events.state")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state was made: %v", err)
	}
}

func TestPasswordsAreNotPrinted(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInFile, 1, 10)
	for _, dsn := range []string{
		"postgres://me:s3cr3t%21@127.0.0.1:1/db",
		"host=127.0.0.1 port=1 user=me password=s3cr3t!",
		"postgres://me:s3cr3t!@[::bad/db",
	} {
		m.env = append(m.env, "PG_DSN="+dsn)
		for _, line := range []string{"plan", "plan -o json", "start", "verify"} {
			if out, code := m.shell("tallystick migrate " + line + " -f plan.yaml"); code != 1 || strings.Contains(out, "s3cr3t") {
				t.Errorf("%s with %s: %s[exit %d]", line, dsn, out, code)
			}
		}
	}
	m.env = append(m.env, "PG_DSN=postgres://me:s3cr3t%21@127.0.0.1:1/db")
	p := m.pod("--log-level", "debug")
	p.err.wait(t, p.done, regexp.MustCompile(`connection refused`))
	p.cmd.Process.Signal(syscall.SIGTERM)
	m.ended(p, 0)
	if out := p.out.String() + p.err.String(); strings.Contains(out, "s3cr3t") {
		t.Error(out)
	}
	m.write("plan.yaml", strings.Replace(planText+stateInFile, "workers: 2", "workers: ${SECRET_COUNT}", 1))
	m.env = append(m.env, "SECRET_COUNT=s3cr3t")
	if out := m.want("tallystick migrate status -f plan.yaml", 1, `^tallystick: plan, line 7: .*\n$`); strings.Contains(out, "s3cr3t") {
		t.Error(out)
	}
}
