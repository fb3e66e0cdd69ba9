package realtest

import (
	"os/exec"
	"syscall"
)

// DieWithTest makes a process that is about to start die with this one, even
// if that is killed. Its other attributes stay.
func DieWithTest(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
