package realtest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// A workspace is the folder of everything that one test process starts.
type workspace struct {
	dir string
	// lifeline is never written to. Its end, which the kernel brings about
	// however the process dies, is what the watchdog waits for.
	lifeline io.WriteCloser
}

// watchdog waits for the end of its input, and then kills the processes named
// in $1/pids and removes $1. What a dying server still writes may make the
// first removal fail.
const watchdog = `
read -r _
for f in "$1"/pids/*; do kill -9 "${f##*/}"; done
for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" && break; sleep 0.5; done`

// ourWorkspace returns the workspace of this process.
var ourWorkspace = sync.OnceValues(openWorkspace)

func openWorkspace() (*workspace, error) {
	dir, err := os.MkdirTemp("", "realtest-")
	if err != nil {
		return nil, err
	}
	// Servers that refuse to be root have to get at their folder below.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "pids"), 0o755); err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", "-c", watchdog, "realtest-watchdog", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt from the keyboard is not for it
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	return &workspace{dir: dir, lifeline: lifeline}, nil
}

// folder makes a folder that nobody else uses.
func (w *workspace) folder(name string) (string, error) {
	dir, err := os.MkdirTemp(w.dir, name+"-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// guard has pid killed when this process ends, until release is called.
func (w *workspace) guard(pid int) (release func(), err error) {
	file := filepath.Join(w.dir, "pids", strconv.Itoa(pid))
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return nil, err
	}
	return func() { os.Remove(file) }, nil
}
