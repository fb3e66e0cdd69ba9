package sequence_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

var seed = flag.Uint64("seed", 0, "of random definitions; 0: another one each time")

// A system is what is compared with PostgreSQL: a service, or a connection to
// one.
type system interface {
	sequence.Leaser
	sequence.Admin
}

// A postgres is the oracle.
type postgres struct{ conn *pgx.Conn }

func newPostgres(t testing.TB) *postgres {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), realtest.PostgresDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return &postgres{conn}
}

// create creates the sequence spec says. It returns "" or, if PostgreSQL
// refuses, the field at fault.
func (p *postgres) create(t testing.TB, spec sequence.Spec) (refused string) {
	t.Helper()
	sql := "create sequence " + pgx.Identifier{spec.Name}.Sanitize()
	for _, f := range []struct {
		words string
		value *int64
	}{{"increment by", spec.Increment}, {"minvalue", spec.Min}, {"maxvalue", spec.Max}, {"start with", spec.Start}} {
		if f.value != nil {
			sql += fmt.Sprintf(" %s %d", f.words, *f.value)
		}
	}
	if spec.Cycle != nil && *spec.Cycle {
		sql += " cycle"
	} else if spec.Cycle != nil {
		sql += " no cycle"
	}
	_, err := p.conn.Exec(t.Context(), sql)
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Code != "22023" { // invalid_parameter_value
		t.Fatalf("%s: %v", sql, err)
	}
	for words, field := range map[string]string{"INCREMENT": "increment", "MINVALUE": "min", "START": "start"} {
		if strings.HasPrefix(e.Message, words) {
			return field
		}
	}
	t.Fatalf("%s: %v", sql, err)
	return ""
}

// nextvals returns the next n values of a sequence, or fewer if that exhausts
// it.
func (p *postgres) nextvals(t testing.TB, name string, n int) (values []int64, exhausted bool) {
	t.Helper()
	rows, err := p.conn.Query(t.Context(), "select nextval($1::text::regclass) from generate_series(1, $2)", pgx.Identifier{name}.Sanitize(), n)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() { // what came before an error is sent
		var v int64
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	if e, ok := errors.AsType[*pgconn.PgError](rows.Err()); ok && e.Code == "2200H" { // sequence_generator_limit_exceeded
		return values, true
	}
	if err := rows.Err(); err != nil || len(values) != n {
		t.Fatalf("%d values of %s: %v", len(values), name, err)
	}
	return values, false
}

// A caller takes values as an application does.
type caller interface {
	// take returns the next n values, 1 or more, or an error and none. Values
	// that are known to be missing before them are counted in gap.
	take(n int) (values []int64, gap int, err error)
	// most is how many values are taken at once.
	most() int
}

// agreement counts what a comparison met, to show that it met everything.
type agreement struct{ refused, exhausted, wrapped, endless, values, gaps int }

// compareWithPostgres creates spec in PostgreSQL and in sys and fails unless
// both refuse it for the same field, or its values, taken by the caller that
// callOn returns, are those of nextval, until both are exhausted or 200 values
// have been compared.
func compareWithPostgres(t testing.TB, pg *postgres, sys sequence.Admin, spec sequence.Spec, rnd *rand.Rand, callOn func() caller, met *agreement) {
	t.Helper()
	refused := pg.create(t, spec)
	res, err := sys.Create(t.Context(), sequence.CreateRequest{Specs: []sequence.Spec{spec}})
	if err != nil {
		t.Fatal(err)
	}
	if e := res[0].Err; refused != "" || e != nil {
		if e == nil || e.Code != sequence.CodeInvalid || e.Field != refused {
			t.Fatalf("PostgreSQL refuses %q, we: %v", refused, e)
		}
		met.refused++
		return
	}

	const compared, spare = 200, 300 // spare for gaps
	want, exhausted := pg.nextvals(t, spec.Name, compared+spare)
	c := callOn()
	done, pos := 0, 0
	for pos < len(want) && done < compared {
		left := len(want) - pos
		if n := left + 1; exhausted && n <= c.most() { // all or none
			if v, gap, err := c.take(n); !errors.Is(err, sequence.ErrExhausted) || gap != 0 {
				t.Fatalf("%d values where %d are left: %v, %v", n, left, v, err)
			}
		}
		n := 1 + rnd.IntN(min(left, c.most()))
		got, gap, err := c.take(n)
		met.gaps += gap
		if pos += gap; pos+n > len(want) {
			break
		}
		if err != nil || len(got) != n {
			t.Fatalf("values %d to %d: %v, %v, PostgreSQL has %v", pos+1, pos+n, got, err, want[pos:pos+n])
		}
		for i, v := range got {
			if v != want[pos+i] {
				t.Fatalf("value %d is %d, PostgreSQL has %d", pos+i+1, v, want[pos+i])
			}
		}
		done, pos = done+n, pos+n
	}
	met.values += done
	met.count(spec, want, exhausted)
	if !exhausted || pos < len(want) {
		return
	}
	for range 3 {
		if v, _, err := c.take(1); !errors.Is(err, sequence.ErrExhausted) {
			t.Fatalf("%v, %v where PostgreSQL is exhausted", v, err)
		}
	}
}

func (m *agreement) count(spec sequence.Spec, want []int64, exhausted bool) {
	switch {
	case exhausted:
		m.exhausted++
	case spec.Cycle != nil && *spec.Cycle && turns(want):
		m.wrapped++
	default:
		m.endless++
	}
}

func (m *agreement) add(o agreement) {
	m.refused += o.refused
	m.exhausted += o.exhausted
	m.wrapped += o.wrapped
	m.endless += o.endless
}

// turns reports whether values both rise and fall, or repeat.
func turns(values []int64) bool {
	up, down := false, false
	for i := 1; i < len(values); i++ {
		up, down = up || values[i] >= values[i-1], down || values[i] <= values[i-1]
	}
	return up && down
}

// nexts takes values of a client, one by one or many at once.
type nexts struct {
	client *sequence.Client
	name   string
	many   int
}

func (c nexts) most() int { return c.many }

func (c nexts) take(n int) ([]int64, int, error) {
	if n == 1 {
		v, err := c.client.Next(context.Background(), c.name)
		return []int64{v}, 0, err
	}
	v, err := c.client.NextN(context.Background(), c.name, n)
	return v, 0, err
}

// restarts takes values of a client and a server that are closed and replaced
// now and then, on the same store.
type restarts struct {
	t      testing.TB
	store  sequence.Store
	svc    *sequence.Service
	client *sequence.Client
	spec   sequence.Spec
	rnd    *rand.Rand
}

func (c *restarts) most() int { return 20 }

// take returns values after a restart, perhaps. A server gives back what
// belongs to the newest epoch; of a sequence that cycles it may hold older
// values too, which it burns and counts. Nothing else may be missing.
func (c *restarts) take(n int) ([]int64, int, error) {
	gap := 0
	if c.svc == nil || c.rnd.IntN(3) == 0 {
		gap = c.close()
		c.svc = sequence.NewService(c.store, sequence.ServiceOptions{})
		c.client = sequence.NewClient(c.svc, sequence.ClientOptions{})
	}
	v, _, err := nexts{c.client, c.spec.Name, 20}.take(n)
	return v, gap, err
}

// close stops what runs and returns how many values were burned.
func (c *restarts) close() (burned int) {
	if c.svc == nil {
		return 0
	}
	if err := errors.Join(c.client.Close(context.Background()), c.svc.Close(context.Background())); err != nil {
		c.t.Fatal(err)
	}
	for _, n := range c.svc.Stats().Burned {
		burned += int(n)
	}
	if burned > 0 && (c.spec.Cycle == nil || !*c.spec.Cycle) {
		c.t.Fatalf("%d values burned: %v", burned, c.svc.Stats().Burned)
	}
	return burned
}

// randomSpec returns a definition as nobody in his senses writes them.
func randomSpec(rnd *rand.Rand, name string) sequence.Spec {
	any := func() int64 {
		switch rnd.IntN(5) {
		case 0:
			return int64(rnd.Uint64())
		case 1:
			return math.MinInt64 + rnd.Int64N(5)
		case 2:
			return math.MaxInt64 - rnd.Int64N(5)
		}
		return rnd.Int64N(41) - 20
	}
	perhaps := func(percent int, v int64) *int64 {
		if rnd.IntN(100) < percent {
			return &v
		}
		return nil
	}
	s := sequence.Spec{Name: name}
	increments := []int64{1, -1, rnd.Int64N(10) + 1, -rnd.Int64N(10) - 1, rnd.Int64N(10) + 1, -rnd.Int64N(10) - 1,
		any(), any(), math.MaxInt64, math.MinInt64}
	s.Increment = perhaps(85, increments[rnd.IntN(len(increments))])
	if rnd.IntN(30) == 0 {
		s.Increment = new(int64(0))
	}
	switch rnd.IntN(5) {
	case 0: // the defaults
	case 1: // anything, contradictions included
		s.Min, s.Max = perhaps(70, any()), perhaps(70, any())
	default: // tiny, or of some hundred
		low := any()
		width := rnd.Int64N([]int64{3, 20, 1000}[rnd.IntN(3)]) + 1
		if low > math.MaxInt64-width {
			low = math.MaxInt64 - width
		}
		s.Min, s.Max = perhaps(95, low), perhaps(95, low+width)
	}
	low, high := value(s.Min, 1), value(s.Max, math.MaxInt64)
	starts := []int64{low, high, any(), low - 1, high + 1}
	if low < high && high-low > 0 {
		within := low + rnd.Int64N(high-low)
		starts = append(starts, within, within, within, within, within)
	}
	s.Start = perhaps(50, starts[rnd.IntN(len(starts))])
	if rnd.IntN(3) > 0 {
		s.Cycle = new(rnd.IntN(2) == 0)
	}
	tune(rnd, &s)
	return s
}

// tune makes caches and blocks small now and then: values must not depend on
// them.
func tune(rnd *rand.Rand, s *sequence.Spec) {
	small := func() *int64 {
		if rnd.IntN(2) == 0 {
			return nil
		}
		return new([]int64{1, 2, 3, 10, 64}[rnd.IntN(5)])
	}
	if s.BlockSize = small(); s.BlockSize != nil && rnd.IntN(2) == 0 {
		s.MaxBlock = new(*s.BlockSize * (1 + rnd.Int64N(3)))
	}
	if s.ClientCacheMin = small(); s.ClientCacheMin != nil && rnd.IntN(2) == 0 {
		s.ClientCacheMax = new(*s.ClientCacheMin * (1 + rnd.Int64N(3)))
	}
}

func value(p *int64, otherwise int64) int64 {
	if p == nil {
		return otherwise
	}
	return *p
}

// TestDefinitionsMeanWhatTheyMeanInPostgres compares random definitions with a
// real server: what it refuses, where it begins, wraps and ends, value for
// value.
func TestDefinitionsMeanWhatTheyMeanInPostgres(t *testing.T) {
	definitions := 60
	if os.Getenv("TALLYSTICK_FULL") == "1" {
		definitions = 500
	}
	s := cmp.Or(*seed, rand.Uint64())
	t.Logf("%d definitions; repeat with -seed %d", definitions, s)
	var all agreement
	for i, how := range []string{"Next", "NextN", "servers restarted", "real server"} {
		t.Run(how, func(t *testing.T) {
			pg, rnd := newPostgres(t), rand.New(rand.NewPCG(s, uint64(i)))
			store := seqtest.NewMemory()
			var sys system = newService(t, store)
			if how == "real server" {
				sys = realServer(t)
			}
			client := sequence.NewClient(sys, sequence.ClientOptions{})
			var met agreement
			for n := range definitions {
				spec := randomSpec(rnd, fmt.Sprintf("seq %d", n))
				callOn := func() caller {
					switch how {
					case "Next", "real server":
						return nexts{client, spec.Name, 1}
					case "NextN":
						return nexts{client, spec.Name, 60}
					}
					c := &restarts{t: t, store: store, spec: spec, rnd: rnd}
					t.Cleanup(func() { c.close() })
					return c
				}
				if !t.Run(spec.Name, func(t *testing.T) {
					t.Logf("increment %s, min %s, max %s, start %s, cycle %t, block_size %s, max_block %s, client_cache_min %s, client_cache_max %s",
						said(spec.Increment), said(spec.Min), said(spec.Max), said(spec.Start), spec.Cycle != nil && *spec.Cycle,
						said(spec.BlockSize), said(spec.MaxBlock), said(spec.ClientCacheMin), said(spec.ClientCacheMax))
					compareWithPostgres(t, pg, sys, spec, rnd, callOn, &met)
				}) && t.Failed() {
					return // the random numbers of what follows depend on it
				}
			}
			t.Logf("%+v", met)
			if n := client.Stats().Values; how != "servers restarted" && n != int64(met.values) {
				t.Errorf("the client counts %d values, %d were taken", n, met.values)
			}
			all.add(met)
		})
	}
	if all.refused == 0 || all.exhausted == 0 || all.wrapped == 0 || all.endless == 0 {
		t.Errorf("some kinds of definitions did not come up: %+v", all)
	}
}

// said returns what a spec says, for a log.
func said(p *int64) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprint(*p)
}
