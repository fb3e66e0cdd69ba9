package sequence_test

import (
	"context"
	"math/rand/v2"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqprom"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// TestEveryMissingValueIsCounted runs clients and servers that come and go
// cleanly, moves clients between servers and alters the sequence under load.
// At the end each value up to the store's counter was either handed out or
// counted as burned, value for value.
func TestEveryMissingValueIsCounted(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { account(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

// A fleet is a set of servers that come and go; it leases from any of them.
type fleet struct {
	store   sequence.Store
	mu      sync.Mutex
	rnd     *rand.Rand
	serving []*sequence.Service
	stopped []*sequence.Service
	ends    []context.CancelFunc
}

func (f *fleet) start() {
	svc := sequence.NewService(f.store, sequence.ServiceOptions{})
	ctx, end := context.WithCancel(context.Background())
	go svc.Run(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serving, f.ends = append(f.serving, svc), append(f.ends, end)
}

func (f *fleet) stop() {
	f.mu.Lock()
	svc, end := f.serving[0], f.ends[0]
	f.serving, f.ends = f.serving[1:], f.ends[1:]
	f.stopped = append(f.stopped, svc)
	f.mu.Unlock()
	end()
	svc.Close(context.Background())
}

func (f *fleet) pick() *sequence.Service {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.serving[f.rnd.IntN(len(f.serving))]
}

func (f *fleet) Lease(ctx context.Context, req sequence.LeaseRequest) (sequence.LeaseResponse, error) {
	time.Sleep(5 * time.Millisecond)
	return f.pick().Lease(ctx, req)
}

func (f *fleet) Return(ctx context.Context, req sequence.ReturnRequest) error {
	time.Sleep(5 * time.Millisecond)
	return f.pick().Return(ctx, req)
}

func account(t *testing.T, rnd *rand.Rand) {
	fleet := &fleet{store: seqtest.NewMemory(), rnd: rand.New(rand.NewPCG(rnd.Uint64(), 2))}
	for range 3 {
		fleet.start()
	}
	create(t, fleet.pick(), sequence.Spec{Name: "s"})

	var mu sync.Mutex
	var got []int64
	work := func(c *sequence.Client, n int, every time.Duration) {
		for range n {
			v, err := c.Next(context.Background(), "s")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			got = append(got, v)
			mu.Unlock()
			time.Sleep(every)
		}
		c.Close(context.Background())
	}
	var clients sync.WaitGroup
	for round := range 10 {
		for range 4 {
			n, every := 1+rnd.IntN(400), time.Duration(1+rnd.IntN(20))*time.Millisecond
			clients.Go(func() { work(sequence.NewClient(fleet, sequence.ClientOptions{}), n, every) })
		}
		time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		fleet.start()
		fleet.stop()
		if round%3 == 2 {
			m := int64(1e9 + round)
			if _, err := fleet.pick().Alter(t.Context(), sequence.AlterRequest{Spec: sequence.Spec{Name: "s", Max: &m}}); err != nil {
				t.Error(err)
			}
		}
	}
	clients.Wait()
	for range 3 {
		fleet.stop()
	}

	slices.Sort(got)
	if n := len(slices.Compact(slices.Clone(got))); n != len(got) {
		t.Errorf("%d values handed out twice", len(got)-n)
	}
	record, err := fleet.store.Load(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	missing := record.Next - 1 - int64(len(got))
	counted := make(map[string]int64)
	var sum int64
	for _, svc := range fleet.stopped {
		for cause, n := range burnedInMetrics(t, svc) {
			counted[cause] += n
			sum += n
		}
	}
	t.Logf("%d handed out, %d missing, counted %v", len(got), missing, counted)
	if sum != missing {
		t.Errorf("%d values are missing, %d are counted", missing, sum)
	}
}

// burnedInMetrics returns what the metrics page of svc says was burned.
func burnedInMetrics(t *testing.T, svc *sequence.Service) map[string]int64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(seqprom.New(svc.Stats))
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	burned := make(map[string]int64)
	for _, m := range regexp.MustCompile(`(?m)^tallystick_sequence_values_burned_total\{cause="(\w+)"\} (\S+)$`).FindAllStringSubmatch(page.Body.String(), -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		burned[m[1]] = int64(n)
	}
	if len(burned) != 4 {
		t.Fatalf("metrics page: %s", page.Body)
	}
	return burned
}
