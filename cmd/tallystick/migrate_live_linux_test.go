package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// openTerminal returns both ends of a terminal of so many columns: what is
// written to the inner one is read from the outer one.
func openTerminal(t *testing.T, columns uint16) (outer, inner *os.File) {
	t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outer.Close() })
	var locked, number int32
	size := [4]uint16{24, columns}
	for request, argument := range map[uintptr]unsafe.Pointer{
		syscall.TIOCSPTLCK: unsafe.Pointer(&locked), syscall.TIOCGPTN: unsafe.Pointer(&number), syscall.TIOCSWINSZ: unsafe.Pointer(&size),
	} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, outer.Fd(), request, uintptr(argument)); errno != 0 {
			t.Fatal(errno)
		}
	}
	inner, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return outer, inner
}

// onScreen runs a pod on a terminal of so many columns until it ends, and
// returns what it shows.
func (m *migrating) onScreen(t *testing.T, columns uint16, code int) string {
	t.Helper()
	outer, inner := openTerminal(t, columns)
	cmd := exec.Command(filepath.Join(binary, "tallystick"), "migrate", "run", "-f", "plan.yaml", "--start")
	cmd.Dir, cmd.Env = m.dir, environment(m.env...)
	cmd.Stdout, cmd.Stderr = inner, inner
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inner.Close()
	kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer kill.Stop()
	shown, err := io.ReadAll(outer) // ends with EIO when nobody has the inner end any more
	if err != nil && !strings.Contains(err.Error(), "input/output error") {
		t.Error(err)
	}
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit %d, want %d: %s", got, code, shown)
	}
	return strings.ReplaceAll(string(shown), "\r\n", "\n") // the terminal adds the \r
}

// slowly makes a migration that takes some seconds, with a row that cannot be
// stored.
func slowly(t *testing.T) *migrating {
	m := newMigrating(t, stateInFile+"limits: {read_rows_per_second: 100}\n", 0, 0)
	for hour, rows := range []int{150, 150, 100, 40, 40} {
		m.fill(hour, rows)
	}
	m.exec("UPDATE room_events SET data = jsonb_build_object('text', repeat('x', 500000)) WHERE id = $1", ulidAt(4, 7))
	m.exec("ANALYZE room_events")
	return m
}

// TestProgressIsDrawnInPlaceOnATerminal: one line that is drawn anew, above
// which the log goes by.
func TestProgressIsDrawnInPlaceOnATerminal(t *testing.T) {
	t.Parallel()
	shown := slowly(t).onScreen(t, 200, 3)
	lines := strings.Split(shown, "\n")
	var last []string // drawn in place
	for _, line := range lines {
		if frames := strings.Split(line, "\r\x1b[K"); len(frames) > 1 {
			last = append(last, frames[1:]...)
		}
	}
	all := strings.Join(last, "\n")
	for what, pattern := range map[string]string{
		"slots":         `room_events IN_PROGRESS.* \| slots [1-4]/5 \d+\.\d % \|`,
		"rows a second": `\| rows [1-9]\d*, [1-9]\d*/s \|`,
		"time left":     `\| left [1-9]\d* s (to \d+ s )?\|`,
		"no time left":  `\| left unknown \|`,
		"workers":       `\| workers [12] \|`,
		"quarantined":   `\| quarantined 1`,
		"the end":       `room_events FINISHED done \| slots 5/5 100.0 % \| rows 480, .*\| quarantined 1`,
		"the log above": `level=INFO msg=status from=IN_PROGRESS to=FINISHED`,
	} {
		if !regexp.MustCompile(pattern).MatchString(all) {
			t.Errorf("%s: nothing like %q was shown", what, pattern)
		}
	}
	if n := strings.Count(all, "room_events IN_PROGRESS"); n < 4 {
		t.Errorf("it was drawn %d times", n)
	}
	if n := len(lines); lines[n-1] != "" || !strings.HasPrefix(lines[n-2], "tallystick: room_events: finished, rows in quarantine: 1") {
		t.Errorf("the last line is %q", lines[max(0, n-2)])
	}
	if t.Failed() {
		t.Logf("%q", shown)
	}
}

func TestProgressStaysInALineOfANarrowTerminal(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, stateInFile, 2, 100)
	for _, frame := range strings.Split(m.onScreen(t, 40, 0), "\r\x1b[K")[1:] {
		if line, _, _ := strings.Cut(frame, "\n"); strings.HasPrefix(line, "room_events") && len(line) > 39 {
			t.Errorf("%d characters: %q", len(line), line)
		}
	}
}

// TestProgressIsALineOfJSONAnInterval where there is no terminal.
func TestProgressIsALineOfJSONAnInterval(t *testing.T) {
	t.Parallel()
	p := slowly(t).pod("--start", "--interval", "500ms")
	began := time.Now()
	<-p.done
	most := int(time.Since(began)/(500*time.Millisecond)) + 2 // and the one at the end
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	if len(lines) < 4 || len(lines) > most {
		t.Errorf("%d lines, want 4 to %d", len(lines), most)
	}
	ranges := 0
	for _, line := range lines {
		var l struct {
			At   time.Time
			Name string
			Rows *struct{ Read, Quarantined *int64 }
			Rate *float64 `json:"rows_per_second"`
			ETA  *[]int64 `json:"eta_s"`
			Work *[]any   `json:"workers"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.At.IsZero() || l.Name != "room_events" || l.Rows == nil || l.Rows.Quarantined == nil || l.Rate == nil || l.ETA == nil || l.Work == nil {
			t.Fatalf("%s: %v", line, err)
		}
		if len(*l.ETA) == 2 {
			ranges++
		}
	}
	if ranges == 0 {
		t.Errorf("no line tells the time left: %s", p.out)
	}
}
