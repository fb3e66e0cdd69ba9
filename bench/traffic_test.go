package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc"
)

// pace asks for values of sequences in turn, at rate a second, until ctx ends.
type pace struct {
	client  *sequence.Client
	names   []string
	rate    int
	values  atomic.Int64
	longest atomic.Int64 // ns
	mu      sync.Mutex
	sampled []float64 // us, one call in 64
}

func (p *pace) run(ctx context.Context, t *testing.T) {
	const tick = 5 * time.Millisecond
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	handles := make([]*sequence.Sequence, len(p.names))
	for i, name := range p.names {
		handles[i] = p.client.Sequence(name)
	}
	each := p.rate * int(tick) / int(time.Second)
	for i := 0; ; {
		for range each {
			start := time.Now()
			if _, err := handles[i%len(handles)].Next(ctx); err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			took := time.Since(start)
			if int64(took) > p.longest.Load() {
				p.longest.Store(int64(took))
			}
			if i%64 == 0 {
				p.mu.Lock()
				p.sampled = append(p.sampled, float64(took)/1e3)
				p.mu.Unlock()
			}
			i++
			p.values.Add(1)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// reset forgets what was measured so far.
func (p *pace) reset() {
	p.values.Store(0)
	p.longest.Store(0)
	p.mu.Lock()
	p.sampled = nil
	p.mu.Unlock()
}

// phase is what was measured between two moments.
type phase struct {
	seconds  float64
	values   int64
	requests int
	blocked  int64
	longest  time.Duration
	p999     float64 // us
}

// traffic sends 50,000 values/s (10,000 in the small run) of 100 sequences
// through three servers and counts every request that reaches the store.
func traffic(t *testing.T, r *results) {
	warm, measure, clients, rate := 3*time.Second, 5*time.Second, 10, 10_000
	if full {
		warm, measure, rate = 30*time.Second, 60*time.Second, 50_000
	}
	store := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t))
	var urls string
	var servers []server
	for range 3 {
		s := startServer(t, onDynamo(store.URL)...)
		servers = append(servers, s)
		urls += "," + s.URL
	}
	var names []string
	var specs []sequence.Spec
	for i := range 100 {
		names = append(names, fmt.Sprintf("orders_%d_seq", i))
		specs = append(specs, sequence.Spec{Name: names[i]})
	}
	if _, err := dial(t, servers[0].URL).Create(t.Context(), sequence.CreateRequest{Specs: specs}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	paces := make([]*pace, clients)
	for i := range paces {
		conn, err := seqrpc.Dial(urls[1:], seqrpc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		paces[i] = &pace{client: sequence.NewClient(conn, sequence.ClientOptions{}), names: names, rate: rate / clients}
		running.Go(func() { paces[i].run(ctx, t) })
	}
	warming := watch(store, paces, warm)
	steady := watch(store, paces, measure)
	stop()
	running.Wait()
	for _, p := range paces {
		p.client.Close(context.Background())
	}

	r.section(fmt.Sprintf("%d,000 values/s", rate/1000), fmt.Sprintf("100 sequences, %d clients, 3 servers, one DynamoDB table (dynalite), %d values/s asked for. Every request that reaches the store is counted, polling too.", clients, rate))
	r.table("phase", "seconds", "values", "store requests", "values per store request", "blocked calls", "longest call, ms", "p99.9 of every 64th call, us")
	for what, p := range map[string]phase{"steady": steady} {
		r.row("warm-up", warming.seconds, warming.values, warming.requests, float64(warming.values)/float64(warming.requests), warming.blocked, float64(warming.longest.Milliseconds()), warming.p999)
		r.row(what, p.seconds, p.values, p.requests, float64(p.values)/float64(p.requests), p.blocked, float64(p.longest.Milliseconds()), p.p999)
	}
	r.text("Bars: at least 5,000 values per store request; at most 1 blocked call in 100,000, the longest 250 ms; p99.9 at most 50 us.")
	r.atMost(t, "store requests per 5,000 values", 5000*float64(steady.requests)/float64(steady.values), 1)
	r.atMost(t, "blocked calls in 100,000", 1e5*float64(steady.blocked)/float64(steady.values), 1)
	r.atMost(t, "longest call, ms", float64(steady.longest.Milliseconds()), 250)
	r.atMost(t, "p99.9, us", steady.p999, 50)
	if got := float64(steady.values) / steady.seconds; full && got < 0.95*float64(rate) || got == 0 { // the small run shares the machine
		t.Errorf("%.0f values/s, want %d", got, rate)
	}
}

// watch measures for a while.
func watch(store *realtest.DynamoProxy, paces []*pace, d time.Duration) phase {
	store.ResetCounts()
	var before int64
	for _, p := range paces {
		p.reset()
		before += p.client.Stats().Blocked
	}
	start := time.Now()
	<-time.After(d)
	ph := phase{seconds: time.Since(start).Seconds(), blocked: -before}
	for _, op := range []string{"UpdateItem", "GetItem", "PutItem", "DescribeTable", "Scan", "DeleteItem", "CreateTable"} {
		ph.requests += store.Count(op, "sequences")
	}
	var samples []float64
	for _, p := range paces {
		ph.values += p.values.Load()
		ph.blocked += p.client.Stats().Blocked
		ph.longest = max(ph.longest, time.Duration(p.longest.Load()))
		p.mu.Lock()
		samples = append(samples, p.sampled...)
		p.mu.Unlock()
	}
	ph.p999 = quantile(samples, 0.999)
	return ph
}
