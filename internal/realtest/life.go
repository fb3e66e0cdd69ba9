package realtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A life is one run of the program.
type life struct {
	process *os.Process
	log     int64         // where its output begins in the log
	ended   chan struct{} // closed when the program has ended
	err     error         // how; valid after ended
}

// run starts the program.
func (p *Process) run() (*life, error) {
	w, err := ourWorkspace()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd, err := p.cmd(log)
	if err != nil {
		return nil, err
	}
	begin, err := log.Seek(0, io.SeekEnd)
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
	l := &life{process: cmd.Process, log: begin, ended: make(chan struct{})}
	go func() { // ends with the program
		l.err = cmd.Wait()
		release()
		close(l.ended)
	}()
	return l, nil
}

// cmd returns the command that writes to log.
func (p *Process) cmd(log *os.File) (*exec.Cmd, error) {
	cmd := exec.Command(p.spec.Path, p.spec.Args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), p.spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	var err error
	cmd.SysProcAttr, err = attributes(p.spec.User)
	return cmd, err
}

// killed reports whether kill -9 ended the program; valid after ended.
func (l *life) killed() bool {
	exit, ok := errors.AsType[*exec.ExitError](l.err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// over reports whether the program has ended.
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
		over := p.life.over() // before looking: it may write and end in between
		err := p.ready()
		switch {
		case err == nil:
			return nil
		case over:
			return fmt.Errorf("%w, and ended with %v", err, p.life.err)
		}
		select {
		case <-p.life.ended:
		case <-limit:
			return fmt.Errorf("%w within %v", err, startLimit)
		case <-ticker.C:
		}
	}
}

// ready returns why the program is not ready yet. That something listens on
// its port says little: that may be another server.
func (p *Process) ready() error {
	log, err := os.ReadFile(p.logFile())
	if err != nil {
		return err
	}
	if !bytes.Contains(log[p.life.log:], []byte(p.spec.Says)) {
		return fmt.Errorf("has not said %q", p.spec.Says)
	}
	if p.spec.Ready == nil {
		return nil
	}
	return p.spec.Ready()
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
