package refill_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/internal/refill"
)

// t0 is when every test begins. Its fraction of a second must not matter.
var t0 = time.Date(2026, 3, 1, 12, 0, 0, 345_678_901, time.UTC)

func at(seconds float64) time.Time {
	return t0.Add(time.Duration(math.Round(seconds * float64(time.Second))))
}

// near fails unless got is want within 0.1 %: counts are kept as float32.
func near(t testing.TB, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-3*math.Abs(want)+1e-9 {
		t.Errorf("%s is %.4g, want %.4g", what, got, want)
	}
}

// feed adds rate values a second between two moments, every that many seconds.
func feed(w *refill.Window, from, to, every, rate float64) {
	for s := from + every; s < to+every/2; s += every {
		w.Add(at(s), int64(math.Round(rate*every)))
	}
}

func TestEmptyWindowHasNoRate(t *testing.T) {
	var w refill.Window
	for _, s := range []float64{-3600, 0, 3600} {
		if w.Rate(at(s)) != 0 || w.Mean(at(s)) != 0 || w.Total(at(s)) != 0 {
			t.Errorf("rate %v, mean %v, total %v of nothing", w.Rate(at(s)), w.Mean(at(s)), w.Total(at(s)))
		}
	}
}

func TestFirstSecondCountsAsAWholeOne(t *testing.T) {
	var w refill.Window
	w.Add(at(0), 50)
	near(t, "rate at once", w.Rate(at(0)), 50)
	near(t, "rate after 0.9 s", w.Rate(at(0.9)), 50)
	w.Add(at(0.5), 50)
	near(t, "rate after 0.5 s", w.Rate(at(0.5)), 100)
	near(t, "rate after 4 s without more", w.Rate(at(4)), 25)
	if n := w.Total(at(4)); n != 100 {
		t.Errorf("total %d", n)
	}
}

func TestSteadyRateIsExact(t *testing.T) {
	for _, rate := range []float64{1, 10, 5000} {
		var w refill.Window
		w.Add(at(0), 0)
		feed(&w, 0, 200, 1, rate)
		near(t, "rate", w.Rate(at(200)), rate)
		near(t, "mean", w.Mean(at(200)), rate)
	}
}

// TestStepIsFollowedAtOnce is the case the estimate exists for, at each
// fraction of a second that the step may fall on.
func TestStepIsFollowedAtOnce(t *testing.T) {
	for _, phase := range []float64{0, 0.001, 0.25, 0.5, 0.75, 0.999} {
		var w refill.Window
		w.Add(at(0), 0)
		feed(&w, 0, 120, 1, 10)
		step := 120 + phase
		w.Add(at(step), int64(math.Round(10*phase)))
		feed(&w, step, step+1, 0.02, 5000)
		if rate := w.Rate(at(step + 1)); rate < 2500 || rate > 5001 {
			t.Errorf("phase %v: %.0f/s one second after the step to 5,000/s", phase, rate)
		}
		if mean := w.Mean(at(step + 1)); mean < 92 || mean > 95 {
			t.Errorf("phase %v: mean %.1f/s one second after the step, want about 93", phase, mean)
		}
		feed(&w, step+1, step+2, 0.02, 5000)
		near(t, "rate two seconds after the step", w.Rate(at(step+2)), 5000)
	}
}

func TestBurstIsForgottenWithTheSpan(t *testing.T) {
	var w refill.Window
	w.Add(at(0), 0)
	feed(&w, 0, 120, 1, 1)
	feed(&w, 120, 122, 0.02, 5000)
	feed(&w, 122, 300, 1, 1)
	for _, c := range []struct{ after, least, most float64 }{
		{2, 4000, 5001}, // the last two seconds are the burst
		{4.1, 160, 180}, // 10,000 values in 60 s
		{59, 160, 180},
		{62.1, 0.9, 1.1},
		{180, 0.9, 1.1},
	} {
		var w2 refill.Window // fed only as far as is known then
		w2.Add(at(0), 0)
		feed(&w2, 0, 120, 1, 1)
		feed(&w2, 120, 122, 0.02, 5000)
		feed(&w2, 122, 120+c.after, 1, 1)
		if got := w2.Rate(at(120 + c.after)); got < c.least || got > c.most {
			t.Errorf("%v s after the burst began: %.4g/s, want %v to %v", c.after, got, c.least, c.most)
		}
	}
}

func TestSpikeAfterIdlenessIsSpreadOverIt(t *testing.T) {
	var w refill.Window
	w.Add(at(0), 0)
	w.Add(at(59), 590) // nobody looked for 59 s
	near(t, "rate", w.Rate(at(59)), 10)
	w.Add(at(59.02), 100) // and now it is known when they were consumed
	if got := w.Rate(at(59.02)); got < 100 {
		t.Errorf("%.4g/s in the first 20 ms of a spike, want 100 at least", got)
	}
	near(t, "mean", w.Mean(at(59.5)), 690./59.5)
}

func TestGapOfAnyLengthIsAveragedOver(t *testing.T) {
	for name, c := range map[string]struct {
		gap  float64 // seconds between two feeds
		n    int64   // values of the second
		want float64 // rate then
	}{
		"the span less a bit":      {59.5, 595, 10},
		"the span":                 {60, 600, 10},
		"a bit more than the span": {60.5, 605, 10},
		"just over":                {61.01, 610, 10},
		"minutes":                  {600, 6000, 10},
		"hours":                    {36_000, 360_000, 10},
		"years":                    {3e8, 3e9, 10},
		"centuries":                {9e9, 9e10, 10},
		"hours, one value":         {36_000, 1, 1. / 36_000},
		"hours, none":              {36_000, 0, 0},
	} {
		for _, phase := range []float64{0, 0.1, 0.5, 0.9} {
			t.Run(name, func(t *testing.T) {
				var w refill.Window
				w.Add(at(0), 0)
				w.Add(at(phase), int64(10*phase))
				w.Add(at(phase+c.gap), c.n)
				near(t, "rate", w.Rate(at(phase+c.gap)), c.want)
				near(t, "mean", w.Mean(at(phase+c.gap)), c.want)
			})
		}
	}
}

func TestConsumptionOlderThanTheSpanIsForgotten(t *testing.T) {
	for _, idle := range []float64{61, 120, 180.5, 86_400} {
		var w refill.Window
		w.Add(at(0), 100_000)
		if got := w.Rate(at(idle)); got != 0 {
			t.Errorf("%.4g/s after %v s without looking", got, idle)
		}
		w.Add(at(idle), 0)
		if got := w.Rate(at(idle)); got != 0 {
			t.Errorf("%.4g/s after %v s", got, idle)
		}
		if n := w.Total(at(idle)); n != 0 {
			t.Errorf("total %d after %v s", n, idle)
		}
	}
}

func TestClockThatStandsStillOrRunsBack(t *testing.T) {
	var w refill.Window
	w.Add(at(0), 10)
	w.Add(at(0), 10)
	w.Add(at(0), 10)
	near(t, "rate of three feeds in one moment", w.Rate(at(0)), 30)
	w.Add(at(-5), 10) // counts as of the last one
	near(t, "rate after a clock ran back", w.Rate(at(0)), 40)
	if got := w.Rate(at(-5)); got < 0 || got > 40 {
		t.Errorf("rate %v before the first feed", got)
	}
	w.Add(at(3), 0)
	w.Add(at(2), 100)
	w.Add(at(3), 0)
	if n := w.Total(at(3)); n != 140 {
		t.Errorf("total %d, want 140", n)
	}
}

// A model keeps every feed and knows the window's answers exactly.
type model struct {
	origin time.Time
	feeds  []fed
}

type fed struct {
	from, to time.Time
	n        float64
}

// within returns what was consumed in [from, to].
func (m *model) within(from, to time.Time) float64 {
	var sum float64
	for _, f := range m.feeds {
		switch lo, hi := later(f.from, from), earlier(f.to, to); {
		case f.from.Equal(f.to):
			if !f.to.Before(from) && !f.to.After(to) {
				sum += f.n
			}
		case hi.After(lo):
			sum += f.n * hi.Sub(lo).Seconds() / f.to.Sub(f.from).Seconds()
		}
	}
	return sum
}

// mean is the mean over the newest n seconds of the window's own ruler, the
// one that has begun included.
func (m *model) mean(now time.Time, n int64) float64 {
	oldest := m.origin.Add(time.Duration(max(0, int64(now.Sub(m.origin)/time.Second)-n+1)) * time.Second)
	return m.within(oldest, now) / max(1, now.Sub(oldest).Seconds())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// TestWindowAgreesWithAnExactModel: nothing consumed within the span is lost or
// counted twice, whatever the times and gaps, and no rate is negative or not a
// number.
func TestWindowAgreesWithAnExactModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w refill.Window
		now := t0
		m := model{origin: now}
		gap := rapid.OneOf(
			rapid.Just(time.Duration(0)),
			rapid.Map(rapid.Int64Range(1, 1_000_000), func(ns int64) time.Duration { return time.Duration(ns) }),
			rapid.Map(rapid.Int64Range(0, 5_000), func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }),
			rapid.Map(rapid.Int64Range(58_000, 62_000), func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }),
			rapid.Map(rapid.Int64Range(0, 200), func(s int64) time.Duration { return time.Duration(s) * time.Second }),
		)
		for i := range rapid.IntRange(1, 40).Draw(t, "feeds") {
			from := now
			if i > 0 {
				now = now.Add(gap.Draw(t, "gap"))
			}
			n := rapid.Int64Range(0, 100_000).Draw(t, "n")
			w.Add(now, n)
			m.feeds = append(m.feeds, fed{from, now, float64(n)})

			read := now.Add(gap.Draw(t, "read after"))
			want := max(m.mean(read, 60), m.mean(read, 2))
			got := w.Rate(read)
			if !(got >= 0) || math.Abs(got-want) > 1e-3*want+1e-3 {
				t.Fatalf("%v after the start: rate %v, want %v", read.Sub(t0), got, want)
			}
			if got, want := w.Mean(read), m.mean(read, 60); math.Abs(got-want) > 1e-3*want+1e-3 {
				t.Fatalf("%v after the start: mean %v, want %v", read.Sub(t0), got, want)
			}
		}
	})
}

// FuzzWindow feeds a window with any times, back and forth within a century,
// and any counts: it answers with a rate that is a number, not negative and no
// larger than all that was consumed.
func FuzzWindow(f *testing.F) {
	f.Add(int64(0), int64(0), int64(0), int64(1), int64(2), int64(3))
	f.Add(int64(time.Second), int64(-time.Second), int64(math.MaxInt64), int64(1), int64(1)<<40, int64(0))
	f.Add(int64(59_600*time.Millisecond), int64(60*time.Second), int64(time.Hour), int64(1_000_000), int64(1), int64(7))
	f.Fuzz(func(t *testing.T, gap1, gap2, gap3, n1, n2, n3 int64) {
		var w refill.Window
		now, total := t0, 0.
		const century = int64(100 * 365 * 24 * time.Hour)
		gap1, gap2, gap3 = gap1%(century/4), gap2%(century/4), gap3%(century/4)
		for _, c := range []struct{ gap, n int64 }{{0, n3}, {gap1, n1}, {gap2, n2}, {gap3, n3}, {gap1, n2}} {
			now = now.Add(time.Duration(c.gap))
			n := max(0, c.n) >> 8
			w.Add(now, n)
			total += float64(n)
			for _, read := range []time.Time{now, now.Add(time.Duration(gap2)), now.Add(time.Second)} {
				if got := w.Rate(read); !(got >= 0 && got <= total*1.001) {
					t.Fatalf("rate %v after %v values in all", got, total)
				}
				if got := w.Total(read); got < 0 || float64(got) > total*1.001+1 {
					t.Fatalf("total %v after %v values in all", got, total)
				}
			}
		}
	})
}
