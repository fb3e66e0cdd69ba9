package realtest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// A workspace is the folder of everything that one test process starts.
type workspace struct {
	dir string
	// lifeline tells the watchdog which processes run. Its end, which the
	// kernel brings about however this process dies, is what it waits for.
	lifeline io.Writer
}

// watchdog reads "start PID" and "end PID" until the end of its input, and then
// kills the processes that have not ended and removes the folder $1. What a
// dying server still writes may make the first removal fail.
const watchdog = `
pids=" "
while read -r what pid; do
	case $what in
	start) pids="$pids$pid " ;;
	end) pids="${pids%% $pid *} ${pids#* $pid }" ;;
	esac
done
kill -9 $pids
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
	_, err = fmt.Fprintln(w.lifeline, "start", pid)
	return func() { fmt.Fprintln(w.lifeline, "end", pid) }, err
}
