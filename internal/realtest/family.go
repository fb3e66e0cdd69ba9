package realtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// attributes returns how to start a server: in a session of its own, so that
// an interrupt from the keyboard does not reach it before the test, and as
// username if this process is root.
func attributes(username string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setsid: true}
	if username == "" || os.Geteuid() != 0 {
		return attr, nil
	}
	uid, gid, err := lookup(username)
	attr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	return attr, err
}

// makes prepares cmd, which fills the folder dir, to run as the user of a server.
func makes(cmd *exec.Cmd, username, dir string) error {
	attr, err := attributes(username)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = attr
	if c := attr.Credential; c != nil {
		return os.Chown(dir, int(c.Uid), int(c.Gid))
	}
	return nil
}

// lookup returns the numbers of a user.
func lookup(username string) (uid, gid uint32, err error) {
	u, err := user.Lookup(username)
	if err != nil {
		return 0, 0, err
	}
	id, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return 0, 0, err
	}
	group, err := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(id), uint32(group), err
}

// killFamily kills pid and its children. The parent is frozen first, so that
// it has no more children meanwhile. It returns when the children are gone: as
// long as one is, PostgreSQL refuses to start on the same data.
func killFamily(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	family := children(pid)
	if err := signalFamily(pid, syscall.SIGKILL); err != nil {
		return err
	}
	deadline := time.Now().Add(stopLimit)
	for _, child := range family {
		for alive(child) {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d does not die", child)
			}
			time.Sleep(pollEvery)
		}
	}
	return nil
}

// alive reports whether a process runs still; a zombie does not.
func alive(pid int) bool {
	s := stateIn(fmt.Sprintf("/proc/%d/stat", pid))
	return s != "" && s != "Z" && s != "X"
}

// stateIn returns the letter of the state in a stat file of /proc, or "" when the
// process or thread is gone.
func stateIn(file string) string {
	stat, _ := os.ReadFile(file)
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) == 0 {
		return ""
	}
	return string(fields[0])
}

// signalFamily sends sig to pid and then to its children: the connections of
// PostgreSQL are processes of their own, which a frozen or killed parent does
// not keep from answering.
func signalFamily(pid int, sig syscall.Signal) error {
	family := children(pid)
	if err := syscall.Kill(pid, sig); err != nil {
		return err
	}
	if sig == syscall.SIGSTOP {
		family = children(pid) // with those born until it stopped
	}
	var errs error
	for _, child := range family {
		if err := syscall.Kill(child, sig); err != syscall.ESRCH {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// frozen reports whether no thread of a process goes on, as far as /proc tells.
// SIGSTOP returns before those on other processors have stopped.
func frozen(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/stat", pid))
	return !slices.ContainsFunc(stats, func(file string) bool {
		s := stateIn(file)
		return s != "" && !strings.Contains("TtZX", s)
	})
}

// children returns the processes whose parent is pid. It knows of none where
// there is no /proc.
func children(pid int) []int {
	var found []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		child, parent := parseStat(file)
		if parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// parseStat returns the ids in a stat file of /proc: "12 (name) S 11 ...",
// where the name may hold anything. They are 0 when the process is gone.
func parseStat(file string) (pid, parent int) {
	stat, _ := os.ReadFile(file)
	paren := bytes.LastIndexByte(stat, ')')
	if paren < 0 {
		return 0, 0
	}
	fields := bytes.Fields(stat[paren+1:])
	if len(fields) < 2 {
		return 0, 0
	}
	pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
	parent, _ = strconv.Atoi(string(fields[1]))
	return pid, parent
}
