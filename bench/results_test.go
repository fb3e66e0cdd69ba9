package bench

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestResults measures everything and holds it against the bars. At full size
// it writes RESULTS.md, unless only some parts were asked for or one of them
// broke off.
func TestResults(t *testing.T) {
	r := newResults(t)
	r.part(t, "hotpath", hotPath)
	r.part(t, "peers", peers)
	r.part(t, "traffic", traffic)
	r.part(t, "fleet", tenThousand)
	migrations(t, r)
	r.part(t, "coupons", couponPace)
	r.part(t, "couponwallet", couponWallet)
	r.part(t, "couponorder", couponOrder)
	r.part(t, "couponlocal", couponLocal)
	if full && !r.partial {
		if err := os.WriteFile("RESULTS.md", []byte(r.b.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
	t.Log(r.b.String())
}

// results is the page being written.
type results struct {
	b       strings.Builder
	columns int
	partial bool // a part did not run to its end
}

// part measures what f measures, as a subtest that can be asked for alone:
// -run Results/NAME.
func (r *results) part(t *testing.T, name string, f func(*testing.T, *results)) {
	t.Helper()
	whole := false
	t.Run(name, func(t *testing.T) {
		f(t, r)
		whole = true
	})
	r.partial = r.partial || !whole
}

func newResults(t *testing.T) *results {
	r := new(results)
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	fmt.Fprintf(&r.b, "# Results\n\nWritten by `make bench` on %s, commit %s, %s, %d cores (%s). Absolute figures depend on the machine; the ratios are what counts.\n",
		time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), runtime.Version(), runtime.NumCPU(), cpu(t))
	return r
}

// cpu returns the processor's name.
func cpu(t *testing.T) string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name\t: "); ok {
			return strings.TrimSpace(name)
		}
	}
	t.Log("no model name in /proc/cpuinfo")
	return runtime.GOARCH
}

func (r *results) section(title, text string) { fmt.Fprintf(&r.b, "\n## %s\n\n%s\n\n", title, text) }

func (r *results) text(format string, args ...any) { fmt.Fprintf(&r.b, "\n"+format+"\n", args...) }

func (r *results) table(columns ...string) {
	r.columns = len(columns)
	fmt.Fprintf(&r.b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

// row adds a row; numbers are rounded to three digits, and 0 stands for none.
func (r *results) row(cells ...any) {
	for _, c := range cells {
		switch c := c.(type) {
		case float64:
			fmt.Fprintf(&r.b, "| %s ", number(c))
		default:
			fmt.Fprintf(&r.b, "| %v ", c)
		}
	}
	r.b.WriteString("|\n")
}

func number(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// atMost fails the test if a figure is over its bar. Timings are judged at
// full size only: the small run shares the machine with other tests.
func (r *results) atMost(t *testing.T, what string, got, bar float64) {
	t.Helper()
	if full && got > bar {
		t.Errorf("%s: %.4g, at most %.4g allowed", what, got, bar)
	}
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
