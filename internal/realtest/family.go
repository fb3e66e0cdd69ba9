package realtest

import (
	"bytes"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
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
// it has no more children meanwhile.
func killFamily(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	return signalFamily(pid, syscall.SIGKILL)
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
