package realtest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
)

// A recorder is a test whose failure is what the real one wants to see.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) Failed() bool     { return len(r.failures) > 0 }
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) end() {
	for _, f := range r.cleanups {
		f()
	}
}

// shell is a server that runs script after it has said that it is ready.
func shell(script string) realtest.Command {
	return realtest.Command{
		Name: "shell", Path: "/bin/sh", Args: []string{"-c", "echo ready; " + script}, Says: "ready",
	}
}

func TestProcessThatEndsByItselfFailsTheTest(t *testing.T) {
	r := &recorder{TB: t}
	p := realtest.Start(r, shell("echo famous last words"))
	awaitGone(t, p.Pid())
	r.end()
	if len(r.failures) != 1 || !strings.Contains(r.failures[0], "famous last words") {
		t.Errorf("want one failure with its output, got %q", r.failures)
	}
}

func TestProcessMethodsOutOfPlaceFailTheTest(t *testing.T) {
	r := &recorder{TB: t}
	p := realtest.Start(r, shell("exec sleep 600"))
	p.Start()
	p.Kill()
	p.Kill()
	p.Pause()
	r.end()
	want := []string{"shell: is running already", "shell: is not running", "shell: is not running"}
	if fmt.Sprint(r.failures) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", r.failures, want)
	}
}

func TestProcessKillTakesItsChildrenWithIt(t *testing.T) {
	file := t.TempDir() + "/child"
	p := realtest.Start(t, shell("sleep 600 & echo $! >"+file+"; wait"))
	var child int
	await(t, "the child's id is known", func() bool {
		text, _ := os.ReadFile(file)
		n, _ := fmt.Sscanln(string(text), &child)
		return n == 1
	})
	p.Kill()
	awaitGone(t, child)
}

// inChild tells the test binary that it is the child of the next test.
const inChild = "REALTEST_IN_CHILD"

// However a test process ends, its servers end too and its folder goes.
func TestServersDieWithTheTestProcess(t *testing.T) {
	if os.Getenv(inChild) != "" {
		leaveServersBehind(t)
		return
	}
	for name, end := range map[string]func(*os.Process) error{
		"killed":   func(p *os.Process) error { return p.Kill() },
		"panicked": func(p *os.Process) error { return p.Signal(syscall.SIGQUIT) }, // the runtime ends it likewise
	} {
		t.Run(name, func(t *testing.T) {
			tmp := publicTemp(t)
			cmd := osexec.Command(os.Args[0], "-test.run=^TestServersDieWithTheTestProcess$")
			cmd.Env = append(os.Environ(), inChild+"=1", "TMPDIR="+tmp)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pids [2]int
			line, _ := bufio.NewReader(out).ReadString('\n')
			if _, err := fmt.Sscan(line, &pids[0], &pids[1]); err != nil {
				cmd.Process.Kill()
				t.Fatalf("the child said %q: %v", line, err)
			}
			if err := end(cmd.Process); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			for _, pid := range pids {
				awaitGone(t, pid)
			}
			await(t, tmp+" is empty", func() bool {
				entries, err := os.ReadDir(tmp)
				return err == nil && len(entries) == 0
			})
		})
	}
}

// publicTemp returns a temporary folder that PostgreSQL's user can get at, as
// he cannot at those of the testing package.
func publicTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "realtest-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// leaveServersBehind starts servers, one of them frozen, says which, and waits
// to be ended.
func leaveServersBehind(t *testing.T) {
	db, frozen := realtest.Postgres(t), realtest.Start(t, shell("exec sleep 600"))
	frozen.Pause()
	fmt.Println(db.Pid(), frozen.Pid())
	select {}
}

// awaitGone waits until there is no such process.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	await(t, fmt.Sprintf("process %d ended", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, fs.ErrNotExist) {
			return syscall.Kill(pid, 0) == syscall.ESRCH
		}
		return strings.Contains(string(stat), ") Z ") // nobody waits for it
	})
}

// await waits until what holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for limit := time.Now().Add(long); !holds(); <-ticker.C {
		if time.Now().After(limit) {
			t.Fatalf("not true within %v: %s", long, what)
		}
	}
}
