package realtest

import (
	"errors"
	"fmt"
	"os"
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
	Name  string       // in errors and file names
	Path  string       // of the program
	Args  []string     // without the program
	Env   []string     // added to the environment of the test
	User  string       // to run as when the test is root; "": as the test
	Says  string       // what it writes, to stdout or stderr, once it is ready; "": any
	Ready func() error // returns nil once it is ready; nil: when it has written Says
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
	l := p.life
	err := p.down(func(l *life) error { return killFamily(l.process.Pid) })
	if err == nil && !l.killed() { // it was ending just then
		err = p.endedByItself(l)
	}
	p.check(err)
}

// Pause freezes the program where it stands: its connections stay open and
// nothing answers from when it returns.
func (p *Process) Pause() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.signal(syscall.SIGSTOP)
	if err == nil {
		err = p.awaitFrozen()
	}
	p.check(err)
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
	l, err := p.run()
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

// down ends the program by how, and fails if it had ended before.
func (p *Process) down(how func(*life) error) error {
	l := p.life
	if l == nil {
		return errors.New("is not running")
	}
	p.life = nil
	if l.over() {
		return p.endedByItself(l)
	}
	if err := how(l); err != nil && !errors.Is(err, syscall.ESRCH) {
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

func (p *Process) endedByItself(l *life) error {
	return fmt.Errorf("has ended by itself (%v); the end of its log:\n%s", l.err, p.logTail())
}

// awaitFrozen waits until the program and its children have stopped.
func (p *Process) awaitFrozen() error {
	pid := p.life.process.Pid
	deadline := time.Now().Add(stopLimit)
	for _, one := range append(children(pid), pid) {
		for !frozen(one) {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d does not stop", one)
			}
			time.Sleep(pollEvery)
		}
	}
	return nil
}

func (p *Process) signal(sig syscall.Signal) error {
	if p.life == nil || p.life.over() {
		return errors.New("is not running")
	}
	return signalFamily(p.life.process.Pid, sig)
}
