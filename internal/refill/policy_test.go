package refill_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/internal/refill"
)

// client is the policy of a client's cache with the defaults.
var client = refill.Policy{Buffer: 5 * time.Second, Periods: 2, Min: 50, Max: 500}

func TestLevelFollowsTheRateWithinItsBounds(t *testing.T) {
	huge := refill.Policy{Buffer: time.Hour, Periods: 2, Min: 1, Max: math.MaxInt64}
	for name, c := range map[string]struct {
		policy refill.Policy
		rate   float64
		want   refill.Level
	}{
		"idle: the smallest cache, a fifth of it as threshold": {client, 0, refill.Level{Capacity: 50, Threshold: 10}},
		"a trickle changes nothing":                            {client, 1, refill.Level{Capacity: 50, Threshold: 10}},
		"the buffer outgrows a fifth":                          {client, 4, refill.Level{Capacity: 50, Threshold: 20}},
		"two buffers, refilled after one":                      {client, 10, refill.Level{Capacity: 100, Threshold: 50}},
		"fractions are cut":                                    {client, 10.19, refill.Level{Capacity: 101, Threshold: 50}},
		"the largest cache, half of it":                        {client, 50, refill.Level{Capacity: 500, Threshold: 250}},
		"threshold goes on rising":                             {client, 70, refill.Level{Capacity: 500, Threshold: 350}},
		"threshold stops at 80 %":                              {client, 80, refill.Level{Capacity: 500, Threshold: 400}},
		"5,000/s":                                              {client, 5000, refill.Level{Capacity: 500, Threshold: 400}},
		"rate beyond int64":                                    {client, 1e300, refill.Level{Capacity: 500, Threshold: 400}},
		"infinite rate":                                        {client, math.Inf(1), refill.Level{Capacity: 500, Threshold: 400}},
		"rate that is no number counts as idle":                {client, math.NaN(), refill.Level{Capacity: 50, Threshold: 10}},
		"negative rate counts as idle":                         {client, -7, refill.Level{Capacity: 50, Threshold: 10}},
		"negative infinite rate counts as idle":                {client, math.Inf(-1), refill.Level{Capacity: 50, Threshold: 10}},
		"no bound but int64, huge rate":                        {huge, 1e300, refill.Level{Capacity: math.MaxInt64, Threshold: math.MaxInt64 - math.MaxInt64/5 - 1}},

		"capacity 1 is refilled when empty":        {refill.Policy{Buffer: time.Second, Periods: 2, Min: 1, Max: 1}, 1000, refill.Level{Capacity: 1, Threshold: 0}},
		"capacity 2 is refilled at its last value": {refill.Policy{Buffer: time.Second, Periods: 2, Min: 2, Max: 2}, 1000, refill.Level{Capacity: 2, Threshold: 1}},
		"capacity 2, idle":                         {refill.Policy{Buffer: time.Second, Periods: 2, Min: 2, Max: 2}, 0, refill.Level{Capacity: 2, Threshold: 0}},
		"capacity 4 stays below 80 %":              {refill.Policy{Buffer: time.Second, Periods: 2, Min: 4, Max: 4}, 1000, refill.Level{Capacity: 4, Threshold: 3}},
		"capacity 6 stays below 80 %":              {refill.Policy{Buffer: time.Second, Periods: 2, Min: 6, Max: 6}, 1000, refill.Level{Capacity: 6, Threshold: 4}},

		"least threshold asked for":       {refill.Policy{Buffer: 5 * time.Second, Periods: 2, Min: 50, Max: 500, MinThreshold: 30}, 0, refill.Level{Capacity: 50, Threshold: 30}},
		"least threshold below a fifth":   {refill.Policy{Buffer: 5 * time.Second, Periods: 2, Min: 50, Max: 500, MinThreshold: 1}, 0, refill.Level{Capacity: 50, Threshold: 1}},
		"least threshold beyond the rate": {refill.Policy{Buffer: 5 * time.Second, Periods: 2, Min: 50, Max: 500, MinThreshold: 70}, 10, refill.Level{Capacity: 100, Threshold: 70}},
		"least threshold beyond capacity": {refill.Policy{Buffer: 5 * time.Second, Periods: 2, Min: 50, Max: 500, MinThreshold: 1000}, 0, refill.Level{Capacity: 50, Threshold: 40}},

		"one period: the next block at 80 %": {refill.Policy{Buffer: time.Minute, Periods: 1, Min: 1000, Max: 1_000_000, MinThreshold: 1000}, 5000, refill.Level{Capacity: 300_000, Threshold: 240_000}},
		"one period, idle":                   {refill.Policy{Buffer: time.Minute, Periods: 1, Min: 1000, Max: 1_000_000, MinThreshold: 1000}, 0, refill.Level{Capacity: 1000, Threshold: 800}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.policy.Level(c.rate); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestDueBelowTheThresholdAndWhenEmpty(t *testing.T) {
	for _, c := range []struct {
		level refill.Level
		held  int64
		want  bool
	}{
		{refill.Level{Capacity: 100, Threshold: 50}, 50, false},
		{refill.Level{Capacity: 100, Threshold: 50}, 49, true},
		{refill.Level{Capacity: 100, Threshold: 50}, 0, true},
		{refill.Level{Capacity: 1, Threshold: 0}, 1, false},
		{refill.Level{Capacity: 1, Threshold: 0}, 0, true},
		{refill.Level{Capacity: 50, Threshold: 10}, 500, false}, // filled when the rate was higher
	} {
		if got := c.level.Due(c.held); got != c.want {
			t.Errorf("%+v with %d left: due %v", c.level, c.held, got)
		}
	}
}

func TestNextLookComesBeforeTheThresholdIsPassed(t *testing.T) {
	for name, c := range map[string]struct {
		level refill.Level
		held  int64
		want  int64
	}{
		"after a quarter, far above the threshold": {refill.Level{Capacity: 100, Threshold: 20}, 100, 75},
		"when due, close to the threshold":         {refill.Level{Capacity: 100, Threshold: 50}, 60, 49},
		"with the next value, at the threshold":    {refill.Level{Capacity: 100, Threshold: 50}, 50, 49},
		"a quarter of the capacity, not of more":   {refill.Level{Capacity: 100, Threshold: 20}, 1000, 975},
		"at the last value of a cache of 1":        {refill.Level{Capacity: 1, Threshold: 0}, 1, 0},
		"one by one in a cache of 2":               {refill.Level{Capacity: 2, Threshold: 0}, 2, 1},
		"never below none":                         {refill.Level{Capacity: 2, Threshold: 0}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.level.NextLook(c.held); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// TestLevelKeepsItsBounds states what owners rely on, for any policy and rate.
func TestLevelKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := refill.Policy{
			Buffer:  time.Duration(rapid.Int64Range(1, 3600).Draw(t, "buffer")) * time.Second,
			Periods: rapid.SampledFrom([]float64{1, 2}).Draw(t, "periods"),
			Min:     rapid.Int64Range(1, 1_000_000).Draw(t, "min"),
		}
		p.Max = rapid.Int64Range(p.Min, 1_000_000).Draw(t, "max")
		p.MinThreshold = rapid.Int64Range(0, 2_000_000).Draw(t, "min threshold")
		rate := rapid.Float64().Draw(t, "rate")
		l := p.Level(rate)
		if l.Capacity < p.Min || l.Capacity > p.Max {
			t.Errorf("capacity %d outside [%d, %d]", l.Capacity, p.Min, p.Max)
		}
		if l.Threshold < 0 || 5*l.Threshold > 4*l.Capacity {
			t.Errorf("threshold %d of capacity %d", l.Threshold, l.Capacity)
		}
		if more := p.Level(2 * rate); rate > 0 && (more.Capacity < l.Capacity || more.Threshold < l.Threshold) {
			t.Errorf("a higher rate lowers %+v to %+v", l, more)
		}
		if l.Due(l.Capacity) {
			t.Errorf("%+v is due when full", l)
		}
		held := rapid.Int64Range(1, 2*l.Capacity).Draw(t, "held")
		if l.Due(held) {
			return
		}
		// The next look comes, after a quarter of the cache at the latest, and
		// not after the cache has become due.
		next := l.NextLook(held)
		if next < 0 || next >= held || held-next > max(1, l.Capacity/4) {
			t.Errorf("%+v with %d left: next look at %d", l, held, next)
		}
		if next+1 < held && l.Due(next+1) {
			t.Errorf("%+v with %d left: due before the next look at %d", l, held, next)
		}
	})
}
