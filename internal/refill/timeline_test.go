package refill_test

import (
	"flag"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/internal/refill"
)

var update = flag.Bool("update", false, "write the golden files anew")

// roundTrip is how long a refill takes in the timelines.
const roundTrip = 5 * time.Millisecond

// A profile is consumption over time, and when to print a line about it.
type profile struct {
	title    string
	arrivals iter.Seq[time.Duration]
	lines    []time.Duration
}

// TestTimelines shows to the eye what the decision does: how the estimate
// follows consumption, beside the plain mean of the last minute, and when a
// client's cache is refilled. A change of the decision shows as a difference of
// text, to be judged and then accepted with -update.
func TestTimelines(t *testing.T) {
	for name, p := range map[string]profile{
		"steady": {"10 values a second", during(0, 180, constant(10)),
			every(20*time.Second, 180)},
		"step": {"10/s, from 60 s on 5,000/s", during(0, 125, func(s float64) float64 {
			if s < 60 {
				return 10
			}
			return 5000
		}), seconds(30, 59, 60, 60.01, 60.02, 60.05, 60.1, 60.2, 60.5, 61, 62, 65, 90, 120, 125)},
		"sine": {"0 to 1,000/s and back in 10 min", during(0, 1200, func(s float64) float64 {
			return 500 * (1 - math.Cos(2*math.Pi*s/600))
		}), every(50*time.Second, 1200)},
		"bursts": {"10 s at 1,000/s, then none for 50 s", during(0, 200, func(s float64) float64 {
			if math.Mod(s, 60) < 10 {
				return 1000
			}
			return 0
		}), seconds(0.02, 0.1, 1, 2, 5, 10, 30, 59.9, 60.1, 61, 62, 65, 70, 90, 119.9, 120.1, 121, 122, 130, 180.1, 200)},
		"trickle": {"one value a minute", during(0, 3*3600, constant(1./60)),
			every(10*time.Minute, 3*3600)},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, timeline(p))
		})
	}
}

// timeline runs a client's cache through p and returns its lines.
func timeline(p profile) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s; a refill takes %v\n", p.title, roundTrip)
	fmt.Fprintf(&out, "%9s %10s %9s %9s %9s %9s %6s %8s %7s\n",
		"time", "consumed/s", "rate", "mean", "capacity", "threshold", "left", "refills", "misses")
	c := cache{policy: client}
	lines, used, since := p.lines, 0, time.Duration(0)
	line := func() {
		now := lines[0]
		c.arrive(now)
		r := c.window.Rate(t0.Add(now))
		level := c.policy.Level(r)
		fmt.Fprintf(&out, "%8.2fs %10.4g %9.4g %9.4g %9d %9d %6d %8d %7d\n", now.Seconds(),
			float64(used)/(now-since).Seconds(), r, c.window.Mean(t0.Add(now)),
			level.Capacity, level.Threshold, c.left, c.refills, c.misses)
		lines, used, since = lines[1:], 0, now
	}
	for at := range p.arrivals {
		for len(lines) > 0 && at > lines[0] {
			line()
		}
		c.take(at)
		used++
	}
	for len(lines) > 0 {
		line()
	}
	return out.String()
}

// A cache is the smallest owner of a window and a policy: it does what a
// client does, without goroutines.
type cache struct {
	policy refill.Policy
	window refill.Window

	left, debt int64 // values in the cache; takers that wait
	used       int64 // values taken since the window was fed
	nextLook   int64 // look when this few are left

	arrives time.Duration // when the refill under way comes; 0: none
	asked   int64

	refills, misses int
}

// take uses one value at the moment at.
func (c *cache) take(at time.Duration) {
	c.arrive(at)
	c.used++
	if c.left == 0 {
		c.misses++
		c.debt++
	} else {
		c.left--
	}
	if c.arrives == 0 && c.left <= c.nextLook {
		c.look(at)
	}
}

// arrive takes over a refill that has come by the moment at.
func (c *cache) arrive(at time.Duration) {
	for c.arrives > 0 && c.arrives <= at {
		served := min(c.debt, c.asked)
		c.left += c.asked - served
		c.debt -= served
		at := c.arrives
		c.arrives = 0
		c.look(at)
	}
}

// look feeds the window and decides.
func (c *cache) look(at time.Duration) {
	now := t0.Add(at)
	c.window.Add(now, c.used)
	c.used = 0
	level := c.policy.Level(c.window.Rate(now))
	if !level.Due(c.left) {
		c.nextLook = level.NextLook(c.left)
		return
	}
	c.asked = max(1, level.Capacity-c.left, c.debt)
	c.arrives = at + roundTrip
	c.refills++
}

func constant(rate float64) func(float64) float64 { return func(float64) float64 { return rate } }

// during returns when values are taken at a rate that depends on the second,
// evenly: each time its integral has grown by one.
func during(from, to float64, rate func(second float64) float64) iter.Seq[time.Duration] {
	const dt = 1e-4
	return func(yield func(time.Duration) bool) {
		sum := 0.
		for i := 0; from+float64(i)*dt < to; i++ {
			s := from + float64(i)*dt
			grown := rate(s) * dt
			if sum+grown >= 1 {
				when := s + (1-sum)/grown*dt
				if !yield(time.Duration(when * float64(time.Second))) {
					return
				}
				sum--
			}
			sum += grown
		}
	}
}

func seconds(s ...float64) []time.Duration {
	lines := make([]time.Duration, len(s))
	for i, v := range s {
		lines[i] = time.Duration(math.Round(v * float64(time.Second)))
	}
	return lines
}

func every(step time.Duration, to float64) []time.Duration {
	var lines []time.Duration
	for at := step; at.Seconds() <= to; at += step {
		lines = append(lines, at)
	}
	return lines
}

// golden compares got with testdata/name.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; accept with -update):\n%s", file, d)
	}
}
