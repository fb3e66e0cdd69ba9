package main_test

import (
	"bufio"
	"fmt"
	"io"
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

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc"
)

func TestWhatServePrintsWorksAsPrinted(t *testing.T) {
	t.Parallel()
	p := start(t)
	_, commands, _ := strings.Cut(p.out.String(), "Try it:\n\n")
	commands, _, _ = strings.Cut(commands, "\n\nStop it")
	script := strings.ReplaceAll(commands, filepath.Join(binary, "tallystick"), "tallystick")
	out, code := shell(t, t.TempDir(), strings.ReplaceAll(script, "curl ", "curl -s "))
	if code != 0 || !strings.HasPrefix(out, "created orders_seq: next 1001,") || !strings.Contains(out, "\n1001\n1006\n1011\n1016\n1021\n{") ||
		!strings.Contains(out, `"runs":[{"first":"1026","step":"5","count":5}]`) {
		t.Errorf("%s\nprinted [exit %d]\n%s", script, code, out)
	}
}

func TestValuesGoOnAfterAGracefulRestart(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.want(t, "tallystick seq create orders_seq --start 1001 --increment 5", "created orders_seq: next 1001, increment 5, remaining 1844674407370954962\n")
	p.want(t, "tallystick seq next orders_seq -n 5", "1001\n1006\n1011\n1016\n1021\n")
	p.want(t, "tallystick seq next orders_seq -n 1", "1026\n")
	if code := p.stop(t); code != 0 {
		t.Errorf("exit %d: %s", code, p.err)
	}
	if !strings.Contains(p.err.String(), `"msg":"stopped","granted":6,"given_back":994`) {
		t.Errorf("the last line does not say what was given back: %s", p.err)
	}
	again := start(t, "--data", p.data)
	again.want(t, "tallystick seq next orders_seq -n 1", "1031\n")
}

func TestSecondServerOfAFolderIsTold(t *testing.T) {
	t.Parallel()
	p := start(t)
	second := launch(t, nil, "--data", p.data)
	if code := second.wait(t); code != 1 {
		t.Errorf("exit %d", code)
	}
	want := fmt.Sprintf("tallystick: data folder %s: in use by another process (process %d) (stop that server, or give this one a folder of its own with --data or TALLYSTICK_DATA)\n", p.data, p.cmd.Process.Pid)
	if got := second.err.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	out, code := shell(t, t.TempDir(), "tallystick seq adopt --skip 1 --data "+p.data)
	if code != 1 || !strings.Contains(out, "in use by another process") || !strings.Contains(out, "stop the server first") {
		t.Errorf("adopt: %s[exit %d]", out, code)
	}
}

func TestSecondServerOfAPortIsTold(t *testing.T) {
	t.Parallel()
	p := start(t)
	second := launch(t, nil, "--listen", strings.TrimPrefix(p.url, "http://"))
	want := fmt.Sprintf("tallystick: cannot listen on %s: address already in use (stop the process that has it, or choose another port with --listen or TALLYSTICK_LISTEN)\n", strings.TrimPrefix(p.url, "http://"))
	if code := second.wait(t); code != 1 || second.err.String() != want {
		t.Errorf("exit %d: %s", code, second.err)
	}
	if _, err := os.Stat(second.data); err == nil {
		t.Error("it left a data folder behind")
	}
}

func TestServerShowsItsHealthAndMetrics(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.run(t, "tallystick seq create a && tallystick seq next a -n 7; tallystick seq next b")
	for path, want := range map[string]string{"/livez": "ok\n", "/readyz": "ok\n"} {
		if got := get(t, p.url+path); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	page := get(t, p.url+"/metrics")
	for _, line := range []string{
		"tallystick_sequence_values_granted_total 7", "tallystick_sequence_leases_granted_total 1",
		`tallystick_sequence_leases_refused_total{code="NOT_FOUND"} 1`, "tallystick_sequence_cached_values 993",
		`tallystick_sequence_values_burned_total{cause="alter"} 0`, `tallystick_sequence_store_requests_total{kind="create",outcome="ok"} 1`,
		`tallystick_rpc_calls_total{code="ok",method="Create"} 1`, "go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(page, "\n"+line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}

// TestSeriesDoNotGrowWithSequences compares one sequence with a thousand.
func TestSeriesDoNotGrowWithSequences(t *testing.T) {
	t.Parallel()
	p := start(t)
	series := func() int { return strings.Count(get(t, p.url+"/metrics"), "\n") }
	p.run(t, "tallystick seq create a && tallystick seq next a && tallystick seq get a && tallystick seq list")
	before := series()
	p.run(t, `awk 'BEGIN { for (i = 0; i < 1000; i++) printf "{\"name\":\"b_%05d\"}\n", i }' | tallystick seq create --file -; for i in 1 2 3 4 5 6 7 8 9; do tallystick seq next b_0000$i; done`)
	if after := series(); after > before+2 {
		t.Errorf("%d lines before, %d after", before, after)
	}
}

func get(t testing.TB, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// hang opens a request that never ends and waits until the server reads it.
func hang(t testing.TB, p *process) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST %sGet HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", procedures)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "100 Continue") { // the handler has begun to read
		t.Fatal(line, err)
	}
	return conn
}

func TestStopWaitsForRequestsUnderWay(t *testing.T) {
	t.Parallel()
	p := start(t)
	conn := hang(t, p)
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.err.wait(t, p.done, regexp.MustCompile(`"stopping"`))
	eventually(t, "new connections are refused", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	body := fmt.Sprintf("%-100s", `{"name":"a"}`)
	fmt.Fprint(conn, body)
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(answer), "404 Not Found") {
		t.Errorf("the request under way got %q, %v", answer, err)
	}
	if code := p.wait(t); code != 0 {
		t.Errorf("exit %d: %s", code, p.err)
	}
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	p := start(t, "--drain-timeout", "100ms")
	hang(t, p)
	if code := p.stop(t); code != 0 || !strings.Contains(p.err.String(), "requests were cut off") {
		t.Errorf("exit %d: %s", code, p.err)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t)
	hang(t, p)
	p.cmd.Process.Signal(syscall.SIGINT)
	p.err.wait(t, p.done, regexp.MustCompile(`"stopping"`))
	begin := time.Now()
	eventually(t, "it ends", func() bool {
		p.cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	})
	if took := time.Since(begin); took > 5*time.Second || p.cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("ended after %v: %v", took, p.cmd.ProcessState)
	}
}

// TestSignalToProcessAndGroup: timeout(1) sends its signal to both.
func TestSignalToProcessAndGroup(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.run(t, "tallystick seq create a && tallystick seq next a")
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.cmd.Process.Signal(syscall.SIGINT)
	if code := p.wait(t); code != 0 || !strings.Contains(p.err.String(), `"given_back":999`) {
		t.Errorf("exit %d: %s", code, p.err)
	}
}

func TestHangupWithoutATerminalIsIgnored(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.cmd.Process.Signal(syscall.SIGHUP)
	if got := get(t, p.url+"/livez"); got != "ok\n" {
		t.Error(got)
	}
}

func TestTooManyRequestsAreToldToComeBack(t *testing.T) {
	t.Parallel()
	p := start(t, "--max-in-flight", "1")
	conn := hang(t, p)
	res, answer := post(t, http.DefaultClient, p.url+procedures+"Get", "", `{"name":"a"}`)
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !strings.Contains(answer, `"retry_after":"0.200s"`) && !strings.Contains(answer, `"retryAfter":"0.200s"`) {
		t.Errorf("%s %v %s", res.Status, res.Header, answer)
	}
	if got := get(t, p.url+"/readyz"); got != "ok\n" {
		t.Errorf("readyz: %q", got)
	}
	conn.Close()
	eventually(t, "the slot is free again", func() bool {
		res, _ := post(t, http.DefaultClient, p.url+procedures+"Get", "", `{"name":"a"}`)
		return res.StatusCode == http.StatusNotFound
	})
}

func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	p := start(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n") // and no end
	conn.SetReadDeadline(time.Now().Add(15 * time.Second))
	if answer, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection stays open: %q %v", answer, err)
	}
}

func TestOversizedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	p := start(t)
	res, answer := post(t, http.DefaultClient, p.url+procedures+"Get", "", `{"name":"`+strings.Repeat("x", 2<<20)+`"}`)
	if res.StatusCode != http.StatusBadRequest || !strings.Contains(answer, "larger than") {
		t.Errorf("body: %s %s", res.Status, answer)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/livez", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Large", strings.Repeat("x", 100<<10))
	res, err = http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("header: %s", res.Status)
	}
}

func TestOtherSitesCannotPost(t *testing.T) {
	t.Parallel()
	p := start(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+procedures+"List", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Error(res.Status)
	}
}

// TestLibraryClientBurnsNothing takes values through the library, as an application does,
// and burns none.
func TestLibraryClientBurnsNothing(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.run(t, "tallystick seq create orders_seq")
	for round := range int64(3) {
		service, err := seqrpc.Dial(p.url, seqrpc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		client := sequence.NewClient(service, sequence.ClientOptions{})
		for i := range int64(10) {
			if got, err := client.Next(t.Context(), "orders_seq"); err != nil || got != round*10+i+1 {
				t.Fatalf("%d, %v; want %d", got, err, round*10+i+1)
			}
		}
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
		p.stop(t)
		p = start(t, "--data", p.data)
	}
}

func TestKilledServerRepeatsNothing(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.run(t, "tallystick seq create a && tallystick seq next a -n 10")
	p.cmd.Process.Kill()
	p.wait(t)
	again := start(t, "--data", p.data)
	again.want(t, "tallystick seq next a", "1001\n") // the rest of the block is burned
}

func TestTimeoutNamesItsFlag(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.cmd.Process.Signal(syscall.SIGSTOP)
	defer p.cmd.Process.Signal(syscall.SIGCONT)
	want := "tallystick: no answer from " + p.url + " within 300ms (--timeout) (try again)\n"
	if out, code := p.run(t, "tallystick seq get a --timeout 300ms"); code != 1 || out != want {
		t.Errorf("%s[exit %d], want %s", out, code, want)
	}
	if out, code := p.run(t, "tallystick seq get a --server https"+strings.TrimPrefix(start(t).url, "http")); code != 1 || !strings.Contains(out, "write http://127.0.0.1:") {
		t.Errorf("https to a server without TLS: %s[exit %d]", out, code)
	}
}

func TestInterruptedNextSaysSo(t *testing.T) {
	t.Parallel()
	p := start(t, "--max-in-flight", "1")
	hang(t, p)
	cmd := exec.Command(filepath.Join(binary, "tallystick"), "seq", "next", "a", "--timeout", "1m", "--server", p.url)
	cmd.Env = environment()
	errs := newLines()
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it asks", func() bool {
		return strings.Contains(get(t, p.url+"/metrics"), `tallystick_http_refused_total{reason="busy"}`)
	})
	cmd.Process.Signal(os.Interrupt)
	err := cmd.Wait()
	if got := errs.String(); cmd.ProcessState.ExitCode() != 1 || got != "tallystick: interrupted\n" {
		t.Errorf("%v %q", err, got)
	}
}

// TestBatchesAreLoggedItemByItem: a refused sequence is not one that was made.
func TestBatchesAreLoggedItemByItem(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.run(t, `printf '{"name":"a"}\n{"name":"b","increment":0}\n' | tallystick seq create --file -; tallystick seq delete a --yes`)
	for _, line := range []string{
		`"method":"Create","code":"ok",`, `"done":1,"names":["a"],"refused":1,"refusals":["b: invalid_argument"]`,
		`"method":"Delete","code":"ok",`, `"done":1,"names":["a"]}`,
	} {
		if !strings.Contains(p.err.String(), line) {
			t.Errorf("the log lacks %s:\n%s", line, p.err)
		}
	}
	if page := get(t, p.url+"/metrics"); !strings.Contains(page, `tallystick_rpc_changes_total{code="invalid_argument",method="Create"} 1`) {
		t.Error("/metrics does not count the refused sequence")
	}
}

func TestRootSaysWhatIsWhere(t *testing.T) {
	t.Parallel()
	p := start(t)
	page := get(t, p.url+"/")
	for _, part := range []string{procedures + "Lease", "/metrics", "/livez", "/readyz"} {
		if !strings.Contains(page, part) {
			t.Errorf("/ lacks %s", part)
		}
	}
	if got := statusOf(t, p.url+"/nowhere", ""); got != http.StatusNotFound {
		t.Errorf("/nowhere: %d", got)
	}
}
