package seqtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tallystick/tallystick/sequence"
)

// TestStore runs the conformance suite: every method and error of
// [sequence.Store]. open is called once; the store may be one that holds other
// sequences, since the suite uses names nobody else has and only counts on
// the generation to rise.
func TestStore(t *testing.T, open func(t *testing.T) sequence.Store) {
	store := open(t)
	for _, group := range []struct {
		name string
		test func(*testing.T, fixture)
	}{
		{"create", testCreate},
		{"load", testLoad},
		{"round trip", testRoundTrip},
		{"advance", testAdvance},
		{"advance at the edges of int64", testAdvanceEdges},
		{"swap", testSwap},
		{"list", testList},
		{"generation", testGeneration},
		{"ended context", testEndedContext},
		{"lost replies", testLost},
		{"late writes", testLate},
		{"model", testModel},
		{"concurrent allocators", testAllocators},
		{"concurrent swaps", testSwaps},
		{"concurrent creates", testCreates},
	} {
		t.Run(group.name, func(t *testing.T) {
			group.test(t, fixture{store: store, salt: fmt.Sprintf("%08x", rand.Uint32())})
		})
	}
}

// A fixture is the store under test and a prefix of names for one group.
type fixture struct {
	store sequence.Store
	salt  string
}

// name returns a name of this group.
func (f fixture) name(s string) string { return f.salt + "/" + s }

// record returns a record with the defaults of a new sequence.
func (f fixture) record(t *testing.T, name string) sequence.Record {
	t.Helper()
	d, err := sequence.Spec{Name: f.name(name)}.Define()
	if err != nil {
		t.Fatal(err)
	}
	return sequence.Record{Definition: d, Epoch: 1, Version: 1, State: sequence.StateOpen, Next: d.Start, Nonce: sequence.NewNonce()}
}

// create writes records that must not exist yet.
func (f fixture) create(t *testing.T, records ...sequence.Record) {
	t.Helper()
	for i, err := range f.store.Create(t.Context(), records) {
		if err != nil {
			t.Fatalf("create %q: %v", records[i].Definition.Name, err)
		}
	}
}

// holds fails the test unless the store holds want.
func (f fixture) holds(t *testing.T, want sequence.Record) {
	t.Helper()
	got, err := f.store.Load(t.Context(), want.Definition.Name)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	same(t, got, want)
}

// lacks fails the test if the store holds a record of name.
func (f fixture) lacks(t *testing.T, name string) {
	t.Helper()
	if r, err := f.store.Load(t.Context(), name); !errors.Is(err, sequence.ErrNotFound) {
		t.Fatalf("load %q = %+v, %v, want ErrNotFound", name, r, err)
	}
}

// same fails the test unless got is want. No labels and none at all are the
// same thing.
func same(t *testing.T, got, want sequence.Record) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("record differs (-want +got):\n%s", d)
	}
}

// is fails the test unless err matches want.
func is(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error = %v, want one that is %v", err, want)
	}
}

func testCreate(t *testing.T, f fixture) {
	t.Run("an empty batch is nothing", func(t *testing.T) {
		if errs := f.store.Create(t.Context(), nil); len(errs) != 0 {
			t.Fatalf("errors = %v, want none", errs)
		}
	})
	t.Run("a batch writes what is new and leaves what exists", func(t *testing.T) {
		old := f.record(t, "old")
		f.create(t, old)
		a, again, b := f.record(t, "a"), f.record(t, "old"), f.record(t, "b")
		again.Next = 77
		errs := f.store.Create(t.Context(), []sequence.Record{a, again, b})
		if len(errs) != 3 || errs[0] != nil || errs[2] != nil {
			t.Fatalf("errors = %v, want only the second", errs)
		}
		is(t, errs[1], sequence.ErrExists)
		f.holds(t, a)
		f.holds(t, old)
		f.holds(t, b)
	})
	t.Run("a name twice in a batch is written once", func(t *testing.T) {
		pair := []sequence.Record{f.record(t, "twice"), f.record(t, "twice")}
		errs := f.store.Create(t.Context(), pair)
		won, lost := 0, 1
		if errs[0] != nil {
			won, lost = 1, 0
		}
		if errs[won] != nil {
			t.Fatalf("errors = %v, want one nil", errs)
		}
		is(t, errs[lost], sequence.ErrExists)
		f.holds(t, pair[won])
	})
	t.Run("a tombstone exists", func(t *testing.T) {
		tomb := f.record(t, "tomb")
		tomb.State = sequence.StateDeleted
		f.create(t, tomb)
		is(t, f.store.Create(t.Context(), []sequence.Record{f.record(t, "tomb")})[0], sequence.ErrExists)
		f.holds(t, tomb)
	})
	t.Run("a name no sequence can have is refused", func(t *testing.T) {
		good, bad, empty := f.record(t, "good"), f.record(t, "bad"), f.record(t, "empty")
		bad.Definition.Name += "\x00"
		empty.Definition.Name = ""
		errs := f.store.Create(t.Context(), []sequence.Record{bad, good, empty})
		is(t, errs[0], sequence.ErrInvalid)
		is(t, errs[2], sequence.ErrInvalid)
		if errs[1] != nil {
			t.Fatalf("the good one: %v", errs[1])
		}
		f.holds(t, good)
	})
	t.Run("a large batch is written whole", func(t *testing.T) {
		var batch []sequence.Record
		for i := range 300 {
			batch = append(batch, f.record(t, fmt.Sprintf("many-%d", i)))
		}
		f.create(t, batch...)
		for _, r := range batch {
			f.holds(t, r)
		}
	})
}

// impossible are names that no sequence can have.
var impossible = []string{"", "\x00", "\ttallystick", "a\nb", strings.Repeat("x", 300)}

func testLoad(t *testing.T, f fixture) {
	f.create(t, f.record(t, "orders"))
	for _, name := range append(impossible,
		f.name("order"), f.name("orders2"), f.name("ORDERS"), f.name("orders "), f.name("ordérs"), f.name("unknown")) {
		f.lacks(t, name)
	}
	composed, decomposed := f.record(t, "caf\u00e9"), f.record(t, "cafe\u0301")
	decomposed.Next = 2
	f.create(t, composed, decomposed)
	f.holds(t, composed)
	f.holds(t, decomposed)
}

func testRoundTrip(t *testing.T, f fixture) {
	for _, r := range f.odd(t) {
		t.Run(r.Definition.Name, func(t *testing.T) {
			f.create(t, r)
			f.holds(t, r)
			next := r
			next.Nonce = sequence.NewNonce()
			got, err := f.store.Swap(t.Context(), r.Nonce, next)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, next)
			f.holds(t, next)
		})
	}
}

// odd returns records with every field set, and at its extremes.
func (f fixture) odd(t *testing.T) []sequence.Record {
	full, low, high := f.record(t, "full"), f.record(t, "low"), f.record(t, "high")
	full.Definition = sequence.Definition{
		Name: full.Definition.Name, Start: 11, Increment: -3, Min: -5, Max: 1<<53 + 1, Cycle: true,
		BlockSize: 17, MaxBlock: 19, ServerCacheMax: 23, ClientCacheMin: 29, ClientCacheMax: 31, MinThreshold: 37, BufferSeconds: 41,
		Owner:  `team "A" <a@example.com> & Söhne \ 株式会社`,
		Labels: map[string]string{"tier": "1", "empty": "", "a/b.c%": "<&>\u2028 'x'", "ключ": "значение"},
	}
	full.Epoch, full.Version, full.State, full.Next, full.GiveBacks = 43, 47, sequence.StateDeleted, 53, 59
	for r, v := range map[*sequence.Record]int64{&low: math.MinInt64, &high: math.MaxInt64} {
		d := &r.Definition
		d.Start, d.Increment, d.Min, d.Max = v, v, v, v
		d.BlockSize, d.MaxBlock, d.ServerCacheMax, d.ClientCacheMin, d.ClientCacheMax, d.MinThreshold, d.BufferSeconds = v, v, v, v, v, v, v
		r.Next, r.Exhausted = v, true
		r.Epoch, r.Version, r.GiveBacks = math.MaxUint64, math.MaxUint32, math.MaxUint64
	}
	none := sequence.Record{Definition: sequence.Definition{Name: f.name("zero")}, Nonce: "n", State: sequence.StateOpen}
	return []sequence.Record{full, low, high, none}
}

func testSwap(t *testing.T, f fixture) {
	r := f.record(t, "swap")
	f.create(t, r)
	t.Run("the right nonce replaces the whole record", func(t *testing.T) {
		next := r
		next.Definition.Labels = map[string]string{"k": "v"}
		next.Next, next.Epoch, next.Nonce = 500, 2, sequence.NewNonce()
		got, err := f.store.Swap(t.Context(), r.Nonce, next)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, next)
		f.holds(t, next)
		r = next
	})
	for name, nonce := range map[string]string{"a nonce of the past": "old", "no nonce": "", "the new nonce": "new"} {
		t.Run(name+" conflicts and shows the record", func(t *testing.T) {
			next := r
			next.Next, next.Nonce = 900, "new"
			got, err := f.store.Swap(t.Context(), nonce, next)
			is(t, err, sequence.ErrConflict)
			same(t, got, r)
			f.holds(t, r)
		})
	}
	for _, name := range append(impossible, f.name("unknown")) {
		t.Run(fmt.Sprintf("%.20q is not found and not made", name), func(t *testing.T) {
			next := f.record(t, "unknown")
			next.Definition.Name = name
			_, err := f.store.Swap(t.Context(), next.Nonce, next)
			is(t, err, sequence.ErrNotFound)
			f.lacks(t, name)
		})
	}
	t.Run("a record deleted stays, and can come back", func(t *testing.T) {
		for _, state := range []sequence.State{sequence.StateDeleted, sequence.StateOpen} {
			next := r
			next.State, next.Nonce = state, sequence.NewNonce()
			if _, err := f.store.Swap(t.Context(), r.Nonce, next); err != nil {
				t.Fatal(err)
			}
			f.holds(t, next)
			r = next
		}
	})
}

func testGeneration(t *testing.T, f fixture) {
	generation := func() uint64 {
		g, err := f.store.Generation(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for range 3 {
		before := generation()
		if again := generation(); again != before {
			t.Fatalf("generation went from %d to %d by itself", before, again)
		}
		if err := f.store.Bump(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := generation(); after <= before {
			t.Fatalf("generation %d after a bump, %d before", after, before)
		}
	}
}

func testEndedContext(t *testing.T, f fixture) {
	r := f.record(t, "r")
	f.create(t, r)
	generation, err := f.store.Generation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for op, call := range map[Op]func() error{
		OpCreate:  func() error { return f.store.Create(ctx, []sequence.Record{f.record(t, "new")})[0] },
		OpLoad:    func() error { _, err := f.store.Load(ctx, r.Definition.Name); return err },
		OpAdvance: func() error { _, err := f.store.Advance(ctx, forward(r, 10)); return err },
		OpSwap: func() error {
			next := r
			next.Nonce = sequence.NewNonce()
			_, err := f.store.Swap(ctx, r.Nonce, next)
			return err
		},
		OpList:       func() error { _, _, _, err := f.store.List(ctx, "", "", 10); return err },
		OpGeneration: func() error { _, err := f.store.Generation(ctx); return err },
		OpBump:       func() error { return f.store.Bump(ctx) },
	} {
		t.Run(string(op), func(t *testing.T) {
			err := call()
			is(t, err, sequence.ErrUnavailable) // it is known that nothing was done,
			is(t, err, context.Canceled)        // and why
		})
	}
	f.lacks(t, f.name("new"))
	f.holds(t, r)
	if g, err := f.store.Generation(t.Context()); err != nil || g != generation {
		t.Fatalf("generation = %d, %v, want %d", g, err, generation)
	}
}
