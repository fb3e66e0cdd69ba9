package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// A contender takes n values, one after the other.
type contender func(n int)

// localClient returns a client in the same process as its service, on the
// in-memory store, with leases of size values and all names warmed.
func localClient(t testing.TB, size int64, names int) (*sequence.Client, []string) {
	t.Helper()
	svc := sequence.NewService(seqtest.NewMemory(), sequence.ServiceOptions{})
	all := make([]string, names)
	specs := make([]sequence.Spec, names)
	for i := range all {
		all[i] = fmt.Sprintf("table_%d_id_seq", i)
		specs[i] = sequence.Spec{Name: all[i], ClientCacheMin: &size, ClientCacheMax: &size}
	}
	if _, err := svc.Create(t.Context(), sequence.CreateRequest{Specs: specs}); err != nil {
		t.Fatal(err)
	}
	c := sequence.NewClient(svc, sequence.ClientOptions{})
	t.Cleanup(func() { c.Close(context.Background()) })
	if err := c.Warm(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		c.Sequence(name)
	}
	return c, all
}

func addAtomic(v *atomic.Int64) contender {
	return func(n int) {
		for range n {
			v.Add(1)
		}
	}
}

func nextOf(t testing.TB, s *sequence.Sequence) contender {
	ctx := context.Background()
	return func(n int) {
		for range n {
			if _, err := s.Next(ctx); err != nil {
				t.Error(err)
				return
			}
		}
	}
}

func nextByName(t testing.TB, c *sequence.Client, names []string) contender {
	ctx := context.Background()
	return func(n int) {
		for i := range n {
			if _, err := c.Next(ctx, names[i%len(names)]); err != nil {
				t.Error(err)
				return
			}
		}
	}
}

// parallel makes of c one that takes its values on all cores at once.
func parallel(c contender) contender {
	return func(n int) {
		cores := runtime.GOMAXPROCS(0)
		var wg sync.WaitGroup
		for range cores {
			wg.Go(func() { c(n / cores) })
		}
		wg.Wait()
	}
}

// perValue returns nanoseconds per value.
func perValue(c contender, n int) float64 {
	start := time.Now()
	c(n)
	return float64(time.Since(start)) / float64(n)
}

// pairs times a and b in turn and returns the median of each, and of the
// ratios b/a pair by pair: the machine's speed drifts, their ratio does not.
func pairs(a, b contender, n, rounds int) (as, bs, ratio float64) {
	var at, bt, rt []float64
	perValue(a, n/10)
	perValue(b, n/10)
	for range rounds {
		x, y := perValue(a, n), perValue(b, n)
		at, bt, rt = append(at, x), append(bt, y), append(rt, y/x)
	}
	return median(at), median(bt), median(rt)
}

// allocations returns how many allocations c makes per value.
func allocations(c contender, n int) float64 {
	c(n / 10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c(n)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n)
}

// hotPath measures Next beside an atomic add.
func hotPath(t *testing.T, r *results) {
	n, rounds := 2_000_000, 3
	if full {
		n, rounds = 20_000_000, 10
	}
	var v atomic.Int64
	one, name := localClient(t, 65_536, 1)
	handle := nextOf(t, one.Sequence(name[0]))
	many, names := localClient(t, 65_536, 10_000)
	small, smallName := localClient(t, 500, 1)

	r.section("Hot path", fmt.Sprintf("In one process, in-memory store, leases of 65,536 values; %d pairs of %d values in turn with `atomic.Int64.Add`. A value by name is one of 10,000 names in turn.", rounds, n))
	r.table("case", "atomic add, ns", "ours, ns", "ratio", "bar")
	row := func(what string, a, b contender, n int, bar float64) {
		x, y, ratio := pairs(a, b, n, rounds)
		r.row(what, x, y, ratio, bar)
		if bar > 0 {
			r.atMost(t, "hot path, "+what, ratio, bar)
		}
	}
	row("`Next` of a handle, one core", addAtomic(&v), handle, n, 2)
	row("`Next` of a handle, all cores", parallel(addAtomic(&v)), parallel(handle), n, 2)
	row("`client.Next(ctx, name)`", addAtomic(&v), nextByName(t, many, names), n/4, 12)
	row("`Next` of a handle, leases of 500", addAtomic(&v), nextOf(t, small.Sequence(smallName[0])), n/4, 0)
	allocs := allocations(handle, 20*65_536)
	r.text("Allocations per value over 20 leases: %.4f (bar: 0.00 to two digits, which is less than 0.005).", allocs)
	r.atMost(t, "allocations per value", allocs, 0.005)
}

// peers measures what else hands out keys, in the same run.
func peers(t *testing.T, r *results) {
	n := 20_000
	if full {
		n = 500_000
	}
	one, name := localClient(t, 500, 1)
	ours := perValue(nextOf(t, one.Sequence(name[0])), n*10)
	node, err := snowflake.NewNode(1)
	if err != nil {
		t.Fatal(err)
	}
	r.section("Peers", "One caller. A value of ours comes from leases of 500; PostgreSQL is on the same machine, over TCP on the loopback interface.")
	r.table("generator", "ns per value", "times ours")
	add := func(what string, ns float64) { r.row(what, ns, ns/ours) }
	add("Tallystick, `Next` of a handle", ours)
	add("bwmarrin/snowflake", perValue(func(n int) {
		for range n {
			node.Generate()
		}
	}, n))
	add("google/uuid v7", perValue(func(n int) {
		for range n {
			uuid.Must(uuid.NewV7())
		}
	}, n))
	conn, err := pgx.Connect(t.Context(), realtest.PostgresDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, cache := range []int{1, 1000} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf("create sequence s%d cache %d", cache, cache)); err != nil {
			t.Fatal(err)
		}
		add(fmt.Sprintf("PostgreSQL nextval, CACHE %d", cache), perValue(func(n int) {
			for range n {
				var v int64
				if err := conn.QueryRow(t.Context(), "select nextval($1)", fmt.Sprintf("s%d", cache)).Scan(&v); err != nil {
					t.Fatal(err)
				}
			}
		}, n/50))
	}
}
