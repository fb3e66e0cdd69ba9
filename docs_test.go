package tallystick_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
)

// TestDocumentedCommandsPrintWhatIsDocumented types the commands of README and
// docs as they stand there, against a real server, and compares what they
// print. In a ```console block a line that begins with "$ " is a command, the
// lines after it are what it prints, and "..." stands for anything. A ```go
// block then runs as the body of a function, against the same server.
func TestDocumentedCommandsPrintWhatIsDocumented(t *testing.T) {
	for _, file := range documents(t) {
		blocks, programs := fenced(t, file, "console"), fenced(t, file, "go")
		if len(blocks)+len(programs) == 0 {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := newSession(t)
			for _, text := range fenced(t, file, "yaml") {
				if strings.HasPrefix(text, "name: ") {
					s.migration(t, text)
				}
			}
			for _, block := range blocks {
				for _, step := range steps(block) {
					s.do(t, step)
				}
			}
			for _, body := range programs {
				s.run(t, body)
			}
		})
	}
}

func documents(t *testing.T) []string {
	docs, err := filepath.Glob("docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatal("no docs", err)
	}
	return append([]string{"README.md"}, docs...)
}

// fenced returns the blocks of a file in the given language.
func fenced(t *testing.T, file, language string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(m[1]))
	}
	return blocks
}

// A step is a command and what it prints.
type step struct{ command, output string }

func steps(block string) []step {
	var all []step
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, step{command: strings.TrimSpace(command)})
		} else if n := len(all); n > 0 {
			all[n-1].output += line
		}
	}
	return all
}

// A session is a reader's terminal: a folder of its own and a running server.
type session struct {
	dir, address string
	second       string // port of a server that a document starts itself
	env          []string
}

func newSession(t *testing.T) *session {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, port, _ := net.SplitHostPort(other.Addr().String())
	s := &session{dir: t.TempDir(), address: l.Addr().String(), second: port}
	repo, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(),
		"PATH="+filepath.Join(s.dir, "bin")+":"+os.Getenv("PATH"),
		"TALLYSTICK_SERVER=http://"+s.address, "TALLYSTICK_LISTEN="+s.address, "TALLYSTICK_DATA="+filepath.Join(s.dir, "data"))
	l.Close()
	other.Close()
	s.start(t, repo)
	if err := os.Symlink(filepath.Join(repo, "bin"), filepath.Join(s.dir, "bin")); err != nil {
		t.Fatal(err)
	}
	return s
}

// migration saves a plan as plan.yaml and starts the servers it names.
func (s *session) migration(t *testing.T, plan string) {
	if err := os.WriteFile(filepath.Join(s.dir, "plan.yaml"), []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "PG_DSN="+realtest.PostgresDSN(t), "DYNAMODB_ENDPOINT="+realtest.DynaliteURL(t), "REDIS_URL="+realtest.Redis(t).URL)
}

// start types `make run` in the repository and leaves it running. What it
// prints is compared where a document shows it.
func (s *session) start(t *testing.T, repo string) {
	cmd := exec.Command("make", "run")
	cmd.Dir, cmd.Env = repo, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	realtest.DieWithTest(cmd)
	out := filepath.Join(s.dir, "make-run")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer // read once the command has ended
	cmd.Stdout, cmd.Stderr = f, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		cmd.Wait()
	}()
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		<-ended
		f.Close()
	})
	for !s.ready(ctx) {
		if ctx.Err() != nil {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
			<-ended
			t.Fatalf("make run is not ready: %s", log.String())
		}
	}
}

// ready waits a moment and reports whether the server answers.
func (s *session) ready(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(50 * time.Millisecond):
	}
	resp, err := http.Get("http://" + s.address + "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// do types a command and compares what it prints.
func (s *session) do(t *testing.T, st step) {
	t.Helper()
	switch st.command {
	case "make test": // this is it
		return
	case "make run": // runs already
		b, err := os.ReadFile(filepath.Join(s.dir, "make-run"))
		if err != nil {
			t.Fatal(err)
		}
		_, greeting, _ := bytes.Cut(b, []byte("tallystick serve\n")) // what make itself echoes
		s.compare(t, st, string(greeting))
		return
	}
	if strings.HasPrefix(st.command, "tallystick serve ") && !strings.Contains(st.command, "--print-config") {
		s.compare(t, st, s.serve(t, st.command))
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", s.here(st.command))
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() > 2) {
		t.Errorf("$ %s\n%v\n%s", st.command, err, out)
	}
	failed := err != nil
	if meant := strings.HasPrefix(st.output, "tallystick: "); failed != meant {
		t.Errorf("$ %s\nfailed: %v, documented: %v\n%s", st.command, failed, meant, out)
	}
	s.compare(t, st, string(out))
}

// serve starts a server that a document shows, leaves it running and returns
// how it greets.
func (s *session) serve(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.Command("bash", "-c", "exec "+s.here(command))
	cmd.Dir, cmd.Env = s.dir, s.env
	realtest.DieWithTest(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var greeting strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&greeting, lines.Text())
		if strings.HasPrefix(lines.Text(), "Stop it") {
			break
		}
	}
	return greeting.String()
}

// usable are the packages that Go blocks may use, besides context and log.
var usable = []string{
	"errors", "fmt", "log/slog", "time",
	module + "sequence", module + "sequence/seqrpc", module + "sequence/seqbolt",
	module + "rollout", module + "rollout/rollouttest", module + "rollout/rolloutfeature",
	module + "shard", module + "shard/shardsql",
	"github.com/open-feature/go-sdk/openfeature", "github.com/open-feature/go-sdk/openfeature/memprovider",
}

// run runs a Go block. The sequences it uses may be new.
func (s *session) run(t *testing.T, body string) {
	t.Helper()
	for _, name := range regexp.MustCompile(`"(\w+_seq)"`).FindAllStringSubmatch(body, -1) {
		create := exec.Command(filepath.Join("bin", "tallystick"), "seq", "create", name[1])
		create.Env = s.env
		if out, err := create.CombinedOutput(); err != nil && !bytes.Contains(out, []byte("exists already")) {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"context\"\n\t\"log\"\n")
	for _, path := range usable {
		if regexp.MustCompile(`\b` + filepath.Base(path) + `\.`).MatchString(body) {
			fmt.Fprintf(&b, "\t%q\n", path)
		}
	}
	b.WriteString(")\n\nfunc main() {\n\tif err := body(context.Background(), \"\"); err != nil {\n\t\tlog.Fatal(err)\n\t}\n}\n\n" +
		"func body(ctx context.Context, token string) error {\n" + s.here(body))
	for _, m := range regexp.MustCompile(`(?m)^([a-z]\w*)(?:, err)? :?= `).FindAllStringSubmatch(body, -1) {
		fmt.Fprintf(&b, "\t_ = %s\n", m[1]) // what the reader goes on with
	}
	b.WriteString("\treturn err\n}\n")

	source, program := filepath.Join(t.TempDir(), "main.go"), filepath.Join(s.dir, "program")
	if err := os.WriteFile(source, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil { // run in the module, whose packages it imports
		t.Errorf("%s\n%s", body, out)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s\n%v\n%s", body, err, out)
	}
}

// here replaces the documents' addresses by this session's.
func (s *session) here(text string) string {
	return strings.NewReplacer("127.0.0.1:7070", s.address, ":7443", ":"+s.second,
		"https://10.0.0.1:7070", "http://"+s.address, "https://10.0.0.2:7070", "http://"+s.address).Replace(text)
}

// compare holds what a command printed against the document.
func (s *session) compare(t *testing.T, st step, got string) {
	t.Helper()
	want := strings.TrimSpace(s.here(st.output))
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), `\.\.\.`, `.*`)
	// The greeting names the server where it is not the default one.
	got = strings.TrimSpace(strings.ReplaceAll(got, " --server http://"+s.address, ""))
	if !regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(got) {
		t.Errorf("$ %s\nprints\n%s\ndocumented is\n%s", st.command, indent(got), indent(want))
	}
}

func indent(text string) string {
	var b strings.Builder
	for sc := bufio.NewScanner(strings.NewReader(text)); sc.Scan(); {
		fmt.Fprintf(&b, "    %s\n", sc.Text())
	}
	return b.String()
}
