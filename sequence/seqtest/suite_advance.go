package seqtest

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/tallystick/tallystick/sequence"
)

// forward returns the advance that takes n values of r wherever its counter
// stands, as far as one value is left after them.
func forward(r sequence.Record, n int64) sequence.Advance {
	d := r.Definition
	a := sequence.Advance{Name: d.Name, Epoch: r.Epoch, Version: r.Version, Delta: n * d.Increment, Low: d.Min, High: d.Max, Nonce: sequence.NewNonce()}
	if d.Descending() {
		a.Low -= a.Delta
	} else {
		a.High -= a.Delta
	}
	return a
}

func testAdvance(t *testing.T, f fixture) {
	for _, c := range []struct {
		name    string
		record  func(*sequence.Record)
		advance func(*sequence.Advance)
		moves   bool
	}{
		{name: "inside its bounds it moves", moves: true},
		{name: "at the low bound it moves", advance: func(a *sequence.Advance) { a.Low = 500 }, moves: true},
		{name: "at the high bound it moves", advance: func(a *sequence.Advance) { a.High = 500 }, moves: true},
		{name: "descending it moves", advance: func(a *sequence.Advance) { a.Delta = -300 }, moves: true},
		{name: "whatever the nonce was it moves", record: func(r *sequence.Record) { r.Nonce = "another" }, moves: true},
		{name: "below the low bound it conflicts", advance: func(a *sequence.Advance) { a.Low = 501 }},
		{name: "above the high bound it conflicts", advance: func(a *sequence.Advance) { a.High = 499 }},
		{name: "with no room between the bounds it conflicts", advance: func(a *sequence.Advance) { a.Low, a.High = 501, 499 }},
		{name: "in an older epoch it conflicts", advance: func(a *sequence.Advance) { a.Epoch = 2 }},
		{name: "in a newer epoch it conflicts", advance: func(a *sequence.Advance) { a.Epoch = 4 }},
		{name: "of an older version it conflicts", advance: func(a *sequence.Advance) { a.Version = 6 }},
		{name: "of a newer version it conflicts", advance: func(a *sequence.Advance) { a.Version = 8 }},
		{name: "of a tombstone it conflicts", record: func(r *sequence.Record) { r.State = sequence.StateDeleted }},
		{name: "of a state not known here it conflicts", record: func(r *sequence.Record) { r.State = "closed" }},
		{name: "of an exhausted sequence it conflicts", record: func(r *sequence.Record) { r.Exhausted = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := f.record(t, c.name)
			r.Next, r.Epoch, r.Version, r.GiveBacks = 500, 3, 7, 5
			r.Definition.Labels = map[string]string{"k": "v"}
			if c.record != nil {
				c.record(&r)
			}
			a := sequence.Advance{Name: r.Definition.Name, Epoch: 3, Version: 7, Delta: 100, Low: 1, High: 900, Nonce: sequence.NewNonce()}
			if c.advance != nil {
				c.advance(&a)
			}
			f.create(t, r)
			f.advances(t, a, r, c.moves)
		})
	}
	for _, name := range append(impossible, f.name("unknown")) {
		t.Run(fmt.Sprintf("of %.20q it is not found and makes nothing", name), func(t *testing.T) {
			a := forward(f.record(t, "unknown"), 1)
			a.Name = name
			_, err := f.store.Advance(t.Context(), a)
			is(t, err, sequence.ErrNotFound)
			f.lacks(t, a.Name)
		})
	}
	t.Run("one after another they take disjoint blocks", func(t *testing.T) {
		r := f.record(t, "chain")
		f.create(t, r)
		for range 5 {
			a := forward(r, 10) // the first record serves all of them
			after, err := f.store.Advance(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			r.Next += 10
			r.Nonce = a.Nonce
			same(t, after, r)
		}
	})
}

// advances fails the test unless a moves r exactly if moves, and the store
// says so in every way it can.
func (f fixture) advances(t *testing.T, a sequence.Advance, r sequence.Record, moves bool) {
	t.Helper()
	if a.Applies(r) != moves {
		t.Fatalf("the case contradicts Advance.Applies")
	}
	want := r
	if moves {
		want = a.To(r)
	}
	got, err := f.store.Advance(t.Context(), a)
	if moves && err != nil {
		t.Fatal(err)
	}
	if !moves && !errors.Is(err, sequence.ErrConflict) {
		t.Fatalf("error = %v, want ErrConflict", err)
	}
	same(t, got, want)
	f.holds(t, want)
}

func testAdvanceEdges(t *testing.T, f fixture) {
	const low, high = math.MinInt64, math.MaxInt64
	for _, c := range []struct {
		name                   string
		next, delta, low, high int64
		moves                  bool
	}{
		{"to the largest", high - 1, 1, low, high - 1, true},
		{"to the smallest", low + 1, -1, low + 1, high, true},
		{"from the smallest by the largest step", low, high, low, 0, true},
		{"from the largest by the smallest step", high, low, -1, high, true},
		{"from the smallest, bounds everything", low, 1, low, high, true},
		{"from the largest, bounds everything", high, -1, low, high, true},
		{"beyond a double's precision", 1<<53 + 1, 2, 1<<53 + 1, 1<<53 + 1, true},
		{"beyond a double's precision, one short", 1 << 53, 2, 1<<53 + 1, high, false},
		{"at the largest, bound one below", high, 1, low, high - 1, false},
		{"at the smallest, bound one above", low, -1, low + 1, high, false},
		{"across zero", -5, 10, -10, 10, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := f.record(t, c.name)
			d := &r.Definition
			d.Min, d.Max, d.Increment = low, high, c.delta
			r.Next, r.Epoch, r.Version = c.next, math.MaxUint64, math.MaxUint32
			f.create(t, r)
			f.advances(t, sequence.Advance{Name: d.Name, Epoch: r.Epoch, Version: r.Version,
				Delta: c.delta, Low: c.low, High: c.high, Nonce: sequence.NewNonce()}, r, c.moves)
		})
	}
}
