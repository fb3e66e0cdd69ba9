package main_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// binary is the folder of the program under test, built once per run.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "tallystick-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		binary = dir
		build := exec.Command("go", "build", "-o", filepath.Join(dir, "tallystick"), ".")
		if out, err := build.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("%v\n%s", err, out))
		}
		return m.Run()
	}())
}

// environment returns a clean one in which `tallystick` is the program under
// test.
func environment(extra ...string) []string {
	env := []string{"PATH=" + binary + ":" + os.Getenv("PATH"), "HOME=" + os.TempDir(), "LC_ALL=C"}
	return append(env, extra...)
}

// shell runs one line of shell in dir and returns what it prints, both streams
// together, and its exit code.
func shell(t testing.TB, dir, line string, env ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = dir, environment(env...)
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatalf("%s: %v", line, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A process is a running server.
type process struct {
	cmd  *exec.Cmd
	url  string
	data string
	out  *lines
	err  *lines
	done chan struct{}
}

// start starts a server on a free port with a folder of its own, unless args
// say otherwise, and waits until it is ready.
func start(t testing.TB, args ...string) *process {
	t.Helper()
	p := launch(t, nil, args...)
	ready := p.out.wait(t, p.done, regexp.MustCompile(`is ready at (\S+),`))
	if ready == nil {
		t.Fatalf("the server ended: %s%s", p.out, p.err)
	}
	p.url = ready[1]
	return p
}

// launch starts a server without waiting.
func launch(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	p := &process{data: filepath.Join(t.TempDir(), "data"), out: newLines(), err: newLines(), done: make(chan struct{})}
	if i := slices.Index(args, "--data"); i >= 0 {
		p.data = args[i+1]
	}
	p.cmd = exec.Command(filepath.Join(binary, "tallystick"), append([]string{"serve", "--listen", "127.0.0.1:0", "--data", p.data, "--coupons", "off"}, args...)...)
	p.cmd.Env = environment(env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // its exit code is asked for later
		close(p.done)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// stop asks the server to stop and returns its exit code.
func (p *process) stop(t testing.TB) int {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	return p.wait(t)
}

func (p *process) wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		t.Fatalf("the server does not end: %s%s", p.out, p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// run runs a command line as a client of p.
func (p *process) run(t testing.TB, line string, env ...string) (string, int) {
	t.Helper()
	return shell(t, t.TempDir(), line, append(env, "TALLYSTICK_SERVER="+p.url)...)
}

// want runs a command line and checks what it prints.
func (p *process) want(t testing.TB, line, want string, env ...string) {
	t.Helper()
	if got, code := p.run(t, line, env...); got != want || code != 0 {
		t.Errorf("$ %s\n%s[exit %d], want\n%s", line, got, code, want)
	}
}

// lines collects what a process prints.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newLines() *lines { return &lines{changed: make(chan struct{}, 1)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait waits until the text matches re, and returns nil if the process ends
// before that.
func (l *lines) wait(t testing.TB, ended chan struct{}, re *regexp.Regexp) []string {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		if m := re.FindStringSubmatch(l.String()); m != nil {
			return m
		}
		select {
		case <-l.changed:
		case <-ended:
			return re.FindStringSubmatch(l.String())
		case <-limit:
			t.Fatalf("no %s in\n%s", re, l)
		}
	}
}

// eventually calls f until it is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	limit := time.Now().Add(20 * time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); !f(); <-tick.C {
		if time.Now().After(limit) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// post does what curl does with -d body, and returns the answer.
func post(t testing.TB, client *http.Client, url, token, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

const procedures = "/tallystick.sequence.v1.SequenceService/"
