package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/sequence"
)

// benchSample is how many calls there are for each one that is timed: reading
// the clock takes longer than most calls.
const benchSample = 64

// benchOptions says what load to make.
type benchOptions struct {
	name     string
	clients  int
	callers  int
	rate     float64
	duration time.Duration
}

func newSeqBench(c *cli) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench NAME",
		Short: "Measure how fast clients get values",
		Long: `Take values through clients as an application would, and print how many came, how
long one took and what they cost the server. The values are used up.`,
		Example: `  tallystick seq create bench_seq --client-cache-max 10000
  tallystick seq bench bench_seq --clients 4 --duration 30s
  tallystick seq bench bench_seq --rate 5000 -o json`,
		Args:              names("NAME"),
		ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if err := o.check(); err != nil {
				return err
			}
			return c.bench(cmd, o)
		},
	}
	cmd.Flags().IntVar(&o.clients, "clients", 1, "how `many` clients, each with its cache")
	cmd.Flags().IntVar(&o.callers, "callers", 1, "how `many` callers share a client")
	cmd.Flags().Float64Var(&o.rate, "rate", 0, "`values` a second, all together; 0: as fast as they come")
	cmd.Flags().DurationVar(&o.duration, "duration", 10*time.Second, "how long")
	return cmd
}

func (o benchOptions) check() error {
	for _, f := range []struct {
		flag  string
		value any
		ok    bool
		limit string
	}{
		{"clients", o.clients, o.clients >= 1 && o.clients <= 1000, "1 to 1000"},
		{"callers", o.callers, o.callers >= 1 && o.callers <= 1000, "1 to 1000"},
		{"rate", o.rate, o.rate >= 0, "0 or more"},
		{"duration", o.duration, o.duration > 0, "more than 0s"},
	} {
		if !f.ok {
			return &usageError{err: fmt.Errorf("--%s %v is out of range", f.flag, f.value), field: f.flag, remedy: "use " + f.limit}
		}
	}
	return nil
}

// A benchResult is what a benchmark measured.
type benchResult struct {
	Values    int64   `json:"values"`
	PerSecond float64 `json:"values_per_second"`
	Leases    int64   `json:"leases"`
	Calls     int64   `json:"calls"`
	Failed    int64   `json:"calls_failed"`
	Blocked   int64   `json:"blocked"`
	P50       int64   `json:"p50_ns"`
	P99       int64   `json:"p99_ns"`
	P999      int64   `json:"p999_ns"`
	Max       int64   `json:"max_ns"`
}

func (c *cli) bench(cmd *cobra.Command, o benchOptions) error {
	s, err := c.connect(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), o.duration)
	defer cancel()
	clients := make([]*sequence.Client, o.clients)
	for i := range clients {
		clients[i] = sequence.NewClient(s, sequence.ClientOptions{})
	}
	begin := time.Now()
	times, err := drive(ctx, clients, o)
	took := time.Since(begin)
	result := measured(clients, times, took)
	for _, client := range clients {
		closing, cancel := c.within(context.WithoutCancel(ctx), 0)
		_ = client.Close(closing) // values that cannot be given back are burned, which a benchmark may
		cancel()
	}
	if err != nil {
		return err
	}
	return c.printBench(result)
}

// drive takes values until ctx ends and returns how long single calls took.
func drive(ctx context.Context, clients []*sequence.Client, o benchOptions) ([]time.Duration, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		times []time.Duration
		first error
	)
	each := o.rate / float64(o.clients*o.callers)
	for _, client := range clients {
		for range o.callers {
			wg.Go(func() {
				own, err := take(ctx, client.Sequence(o.name), each)
				mu.Lock()
				defer mu.Unlock()
				times = append(times, own...)
				if first == nil {
					first = err
				}
			})
		}
	}
	wg.Wait()
	return times, first
}

// take takes values at a rate, 0 for as fast as they come, until ctx ends.
func take(ctx context.Context, s *sequence.Sequence, rate float64) ([]time.Duration, error) {
	var times []time.Duration
	begin := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		if rate > 0 && !pause(ctx, time.Until(begin.Add(time.Duration(float64(n)/rate*float64(time.Second))))) {
			break
		}
		var called time.Time
		timed := n%benchSample == 0
		if timed {
			called = time.Now()
		}
		if _, err := s.Next(ctx); err != nil {
			if ctx.Err() != nil {
				break
			}
			return times, err
		}
		if timed {
			times = append(times, time.Since(called))
		}
	}
	return times, nil
}

// pause waits d, and reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func measured(clients []*sequence.Client, times []time.Duration, took time.Duration) benchResult {
	var r benchResult
	for _, c := range clients {
		st := c.Stats()
		r.Values += st.Values
		r.Leases += st.Leases
		r.Calls += st.Calls
		r.Failed += st.CallsFailed
		r.Blocked += st.Blocked
	}
	r.PerSecond = float64(r.Values) / took.Seconds()
	slices.Sort(times)
	r.P50, r.P99, r.P999, r.Max = quantile(times, .5), quantile(times, .99), quantile(times, .999), quantile(times, 1)
	return r
}

// quantile returns the q-quantile of sorted times in nanoseconds.
func quantile(times []time.Duration, q float64) int64 {
	if len(times) == 0 {
		return 0
	}
	return times[min(int(q*float64(len(times))), len(times)-1)].Nanoseconds()
}

func (c *cli) printBench(r benchResult) error {
	if c.output == jsonForm {
		return c.printJSON(r)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "values\t%d\n", r.Values)
	fmt.Fprintf(w, "values a second\t%.0f\n", r.PerSecond)
	fmt.Fprintf(w, "calls to the server\t%d, of which %d failed\n", r.Calls, r.Failed)
	fmt.Fprintf(w, "leases\t%d\n", r.Leases)
	fmt.Fprintf(w, "had to wait\t%d\n", r.Blocked)
	fmt.Fprintf(w, "time of one, sampled\tp50 %v, p99 %v, p99.9 %v, longest %v\n",
		time.Duration(r.P50), time.Duration(r.P99), time.Duration(r.P999), time.Duration(r.Max))
	return w.Flush()
}
