package main_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// onTerminal runs a command line of tallystick in a terminal of its own.
func onTerminal(t *testing.T, p *process, line string) (*exec.Cmd, *lines, chan struct{}) {
	t.Helper()
	cmd := exec.Command("script", "--quiet", "--return", "--command", line, "/dev/null")
	cmd.Env = environment("TALLYSTICK_SERVER=" + p.url)
	out, done := newLines(), make(chan struct{})
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out, done
}

func TestDeleteAsksOnATerminal(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.run(t, "tallystick seq create a_seq && tallystick seq create b_seq")
	for _, tc := range []struct {
		name, line, typed, says string
		code                    int
	}{
		{"no such", "tallystick seq delete none", "", "does not exist", 1},
		{"no", "tallystick seq delete a_seq", "n\n", "nothing was changed", 1},
		{"Ctrl-C", "tallystick seq delete a_seq", "\x03", "interrupted: nothing was changed", 130},
		{"yes", "tallystick seq delete b_seq", "y\n", "deleted b_seq", 0},
	} {
		cmd, out, done := onTerminal(t, p, tc.line)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = cmd.Wait() // its exit code is asked for later
			close(done)
		}()
		if tc.typed != "" {
			out.wait(t, done, regexp.MustCompile(`\[y/N\] `))
			if _, err := in.Write([]byte(tc.typed)); err != nil {
				t.Fatal(err)
			}
		}
		<-done
		if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(out.String(), tc.says) {
			t.Errorf("%s: exit %d: %s", tc.name, code, out)
		}
	}
	p.want(t, "tallystick seq list | wc -l", "2\n")
}
