package realtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// How long a server may take. Far more than any does, because the machine may
// be busy with other tests.
const (
	startLimit = 60 * time.Second
	stopLimit  = 30 * time.Second
	pollEvery  = 10 * time.Millisecond
)

// A Command says how to run a server.
type Command struct {
	Name  string   // in errors and file names
	Path  string   // of the program
	Args  []string // without the program
	Env   []string // added to the environment of the test
	User  string   // to run as when the test is root; "": as the test
	Ready func() error
	// Interrupt asks the program to end in order; nil: SIGTERM.
	Interrupt os.Signal
}

// A Process is a running server, and the way to take it down and up again. If
// something goes wrong in a method, the test fails but goes on, so that any
// goroutine may call them.
type Process struct {
	t    testing.TB // nil: shared by the tests of the process
	spec Command
	dir  string // of the log; also for data

	mu   sync.Mutex // held by each exported method
	life *life      // nil: down
}

// A life is one run of the program.
type life struct {
	process *os.Process
	ended   chan struct{} // closed when the program has ended
	err     error         // how; valid after ended
}

// Start runs c until the test ends, and returns when it is ready. The test
// fails if the program ends before it is told to.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	p, err := newProcess(c)
	if err == nil {
		err = p.up()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.bind(t)
	return p
}

// newProcess returns a process that is not running yet.
func newProcess(c Command) (*Process, error) {
	w, err := ourWorkspace()
	if err != nil {
		return nil, err
	}
	dir, err := w.folder(c.Name)
	if err != nil {
		return nil, err
	}
	return &Process{spec: c, dir: dir}, nil
}

// bind makes p end with t.
func (p *Process) bind(t testing.TB) {
	p.t = t
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", p.spec.Name, p.logTail())
		}
		if p.Pid() != 0 {
			p.Kill()
		}
		os.RemoveAll(p.dir)
	})
}

// Start runs the program again, on the same port and data, and returns when it
// is ready.
func (p *Process) Start() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check(p.up())
}

// Stop asks the program to end and waits until it has.
func (p *Process) Stop() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	sig := p.spec.Interrupt
	if sig == nil {
		sig = syscall.SIGTERM
	}
	p.check(p.down(func(l *life) error { return l.process.Signal(sig) }))
}

// Kill ends the program with no chance to do anything, as kill -9 does, and
// waits until it is gone.
func (p *Process) Kill() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check(p.down(func(l *life) error { return killFamily(l.process.Pid) }))
}

// Pause freezes the program where it stands: its connections stay open and
// nothing answers.
func (p *Process) Pause() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check(p.signal(syscall.SIGSTOP))
}

// Resume undoes [Process.Pause].
func (p *Process) Resume() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check(p.signal(syscall.SIGCONT))
}

// Pid returns the process id, and 0 when the program is not running.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life == nil {
		return 0
	}
	return p.life.process.Pid
}

func (p *Process) check(err error) {
	if err != nil {
		p.t.Helper()
		p.t.Errorf("%s: %v", p.spec.Name, err)
	}
}

// up starts the program and waits until it is ready.
func (p *Process) up() error {
	if p.life != nil {
		return errors.New("is running already")
	}
	cmd, err := p.cmd()
	if err != nil {
		return err
	}
	l, err := run(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	p.life = l
	if err := p.awaitReady(); err != nil {
		killFamily(l.process.Pid)
		<-l.ended
		p.life = nil
		return fmt.Errorf("start %s: %w; the end of its log:\n%s", p.spec.Name, err, p.logTail())
	}
	return nil
}

// down ends the program by how.
func (p *Process) down(how func(*life) error) error {
	l := p.life
	if l == nil {
		return errors.New("is not running")
	}
	p.life = nil
	if l.over() {
		return fmt.Errorf("has ended by itself (%v); the end of its log:\n%s", l.err, p.logTail())
	}
	if err := how(l); err != nil {
		return err
	}
	select {
	case <-l.ended:
		return nil
	case <-time.After(stopLimit):
		killFamily(l.process.Pid)
		return fmt.Errorf("did not end within %v", stopLimit)
	}
}

func (p *Process) signal(sig syscall.Signal) error {
	if p.life == nil || p.life.over() {
		return errors.New("is not running")
	}
	return signalFamily(p.life.process.Pid, sig)
}

// cmd returns the command of the next life.
func (p *Process) cmd() (*exec.Cmd, error) {
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.spec.Path, p.spec.Args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), p.spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr, err = attributes(p.spec.User)
	return cmd, err
}

// run starts cmd, whose output is a file that run closes.
func run(cmd *exec.Cmd) (*life, error) {
	defer cmd.Stdout.(*os.File).Close()
	w, err := ourWorkspace()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	release, err := w.guard(cmd.Process.Pid)
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	l := &life{process: cmd.Process, ended: make(chan struct{})}
	go func() {
		l.err = cmd.Wait()
		release()
		close(l.ended)
	}()
	return l, nil
}

func (l *life) over() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// awaitReady returns when the program is ready, or why it will not be.
func (p *Process) awaitReady() error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	limit := time.After(startLimit)
	for {
		err := p.spec.Ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.life.ended:
			return fmt.Errorf("ended with %v", p.life.err)
		case <-limit:
			return fmt.Errorf("not ready within %v: %w", startLimit, err)
		case <-ticker.C:
		}
	}
}

func (p *Process) logFile() string { return filepath.Join(p.dir, "log") }

// logTail returns the last lines of the program's output.
func (p *Process) logTail() string {
	text, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}
