package bench

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pod is a running `migrate run`.
type pod struct {
	cmd *exec.Cmd
	log *os.File
}

func (m *migration) pod(args ...string) pod {
	m.t.Helper()
	cmd := m.command(append([]string{"run"}, args...)...)
	log, err := os.CreateTemp(m.dir, "pod-")
	if err != nil {
		m.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	return pod{cmd, log}
}

// end returns the exit code of a pod that ends by itself, -1 if a signal has
// ended it. One that does not end within limit shows where it hangs.
func (p pod) end(limit time.Duration) int {
	timer := time.AfterFunc(limit, func() { p.cmd.Process.Signal(syscall.SIGQUIT) })
	defer timer.Stop()
	p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// wait returns when the pod has ended by itself, as it does with the migration.
func (p pod) wait(t *testing.T, limit time.Duration) {
	t.Helper()
	if code := p.end(limit); code != 0 {
		t.Errorf("pod: exit %d\n%s", code, p.tail(t))
	}
}

// kill ends the pod with kill -9, unless the migration has ended it before.
func (p pod) kill(t *testing.T) {
	t.Helper()
	p.cmd.Process.Kill()
	if code := p.end(time.Minute); code > 0 {
		t.Errorf("pod: exit %d before it was killed\n%s", code, p.tail(t))
	}
}

// tail returns the end of what the pod has printed.
func (p pod) tail(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(p.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b[max(0, len(b)-4000):])
}

// lastLine returns the last line that the pod has printed.
func (p pod) lastLine(t *testing.T) string {
	t.Helper()
	text := strings.TrimSpace(p.tail(t))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// pods are all pods of a migration.
type pods []pod

// start starts a migration with n pods.
func (m *migration) start(n int) pods {
	m.t.Helper()
	all := pods{m.pod("--start")}
	for len(all) < n {
		all = append(all, m.pod())
	}
	return all
}

// replace kills one of them, starts another, and returns one that still runs.
func (all pods) replace(m *migration) pod {
	m.t.Helper()
	i := rand.IntN(len(all))
	all[i].kill(m.t)
	all[i] = m.pod()
	return all[(i+1)%len(all)]
}

// wait returns when all have ended by themselves.
func (all pods) wait(t *testing.T) {
	t.Helper()
	for _, p := range all {
		p.wait(t, 20*time.Minute)
	}
}

// pause stops the pod for a while, as SIGSTOP does.
func (p pod) pause(d time.Duration) {
	p.cmd.Process.Signal(syscall.SIGSTOP)
	time.AfterFunc(d, func() { p.cmd.Process.Signal(syscall.SIGCONT) })
}
