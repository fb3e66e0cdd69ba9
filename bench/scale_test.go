package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/sequence"
)

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[min(len(v)-1, int(float64(len(v))*q))]
}

// tenThousand makes 10,000 sequences on one server on a local file, uses each,
// and looks at what they cost.
func tenThousand(t *testing.T, r *results) {
	idle := 2 * time.Second
	if full {
		idle = 30 * time.Second
	}
	s := startServer(t)
	admin := dial(t, s.URL)
	before := rss(t, s.Pid())
	goroutines := metric(t, s.URL, "go_goroutines")
	var names []string
	var specs []sequence.Spec
	for i := range sequence.MaxCreate {
		names = append(names, fmt.Sprintf("team_%d/table_%d_id_seq", i%100, i))
		specs = append(specs, sequence.Spec{Name: names[i]})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	results, err := admin.Create(ctx, sequence.CreateRequest{Specs: specs})
	created := time.Since(start)
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range results {
		if res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	client := sequence.NewClient(admin, sequence.ClientOptions{})
	if err := client.Warm(ctx, names...); err != nil {
		t.Fatal(err)
	}
	used := rss(t, s.Pid())
	cpu := cpuSeconds(t, s.Pid())
	<-time.After(idle)
	busy := (cpuSeconds(t, s.Pid()) - cpu) / idle.Seconds() * 100
	more := metric(t, s.URL, "go_goroutines")
	client.Close(ctx)

	each := float64(used-before) / float64(len(names))
	r.section("10,000 sequences", "On one server on a local file: created in one call, then a lease of each.")
	r.table("figure", "measured", "bar")
	r.row("created in one call, s", created.Seconds(), "10")
	r.row("resident memory per sequence in use, KB", each, "8")
	r.row("processor while idle, % of a core", fmt.Sprintf("%.2f", busy), "1")
	r.row("goroutines before", goroutines, "")
	r.row("goroutines with 10,000 in use", more, "independent")
	r.atMost(t, "seconds to create", created.Seconds(), 10)
	r.atMost(t, "KB per sequence", each, 8)
	r.atMost(t, "% of a core idle", busy, 1)
	r.atMost(t, "goroutines more", more-goroutines, 50)
}

// rss returns the resident memory of a process in KB.
func rss(t testing.TB, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// cpuSeconds returns the processor time a process has used.
func cpuSeconds(t testing.TB, pid int) float64 {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(after)
	user, err1 := strconv.ParseFloat(f[11], 64)
	system, err2 := strconv.ParseFloat(f[12], 64)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return (user + system) / 100 // USER_HZ
}

// metric returns the sum of a metric of a server.
func metric(t testing.TB, url, name string) float64 {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	found := false
	for line := range strings.Lines(string(body)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		f := strings.Fields(rest)
		v, err := strconv.ParseFloat(f[len(f)-1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
		found = true
	}
	if !found {
		t.Fatalf("no metric %s", name)
	}
	return sum
}
