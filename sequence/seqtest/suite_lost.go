package seqtest

import (
	"testing"

	"github.com/tallystick/tallystick/sequence"
)

// A step is one write of the protocol on a record, with the record after it.
type step struct {
	op    Op
	write func(*testing.T, sequence.Store, sequence.Record) error
	after func(sequence.Record) sequence.Record
}

// steps returns every write that changes a record. nonce is what each of them
// writes.
func steps(nonce string) []step {
	swapped := func(r sequence.Record) sequence.Record {
		r.Next, r.Nonce = 800, nonce
		return r
	}
	advanced := func(r sequence.Record) sequence.Advance {
		a := forward(r, 50)
		a.Nonce = nonce
		return a
	}
	return []step{
		{OpAdvance,
			func(t *testing.T, s sequence.Store, r sequence.Record) error {
				_, err := s.Advance(t.Context(), advanced(r))
				return err
			},
			func(r sequence.Record) sequence.Record { return advanced(r).To(r) }},
		{OpSwap,
			func(t *testing.T, s sequence.Store, r sequence.Record) error {
				_, err := s.Swap(t.Context(), r.Nonce, swapped(r))
				return err
			}, swapped},
	}
}

// testLost loses the request or the reply of each write: a consistent read
// tells by the nonce which it was.
func testLost(t *testing.T, f fixture) {
	faulty := NewFaulty(f.store)
	faults := map[string]Fault{"request": LostRequest, "reply": LostReply}
	for lost, fault := range faults {
		for _, s := range steps(sequence.NewNonce()) {
			t.Run(string(s.op)+"/"+lost, func(t *testing.T) {
				r := f.record(t, t.Name())
				f.create(t, r)
				faulty.Plan(Once(s.op, fault))
				is(t, s.write(t, faulty, r), sequence.ErrUnknownOutcome)
				if fault == LostReply {
					r = s.after(r)
				}
				f.holds(t, r)
			})
		}
		t.Run("create/"+lost, func(t *testing.T) {
			r := f.record(t, t.Name())
			faulty.Plan(Once(OpCreate, fault))
			is(t, faulty.Create(t.Context(), []sequence.Record{r})[0], sequence.ErrUnknownOutcome)
			if fault == LostReply {
				f.holds(t, r)
			} else {
				f.lacks(t, r.Definition.Name)
			}
		})
		t.Run("bump/"+lost, func(t *testing.T) {
			before, err := f.store.Generation(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			faulty.Plan(Once(OpBump, fault))
			is(t, faulty.Bump(t.Context()), sequence.ErrUnknownOutcome)
			after, err := f.store.Generation(t.Context())
			if err != nil || after > before != (fault == LostReply) {
				t.Fatalf("generation went from %d to %d, %v", before, after, err)
			}
		})
	}
}

// testLate lets a write that was given up arrive after another one: it may
// move the counter on, and never undoes what came before it.
func testLate(t *testing.T, f fixture) {
	faulty := NewFaulty(f.store)
	for _, late := range steps(sequence.NewNonce()) {
		for _, between := range steps(sequence.NewNonce()) {
			t.Run(string(late.op)+" after "+string(between.op), func(t *testing.T) {
				r := f.record(t, t.Name())
				f.create(t, r)
				faulty.Plan(Once(late.op, LateWrite))
				is(t, late.write(t, faulty, r), sequence.ErrUnknownOutcome)
				f.holds(t, r)
				if err := between.write(t, f.store, r); err != nil {
					t.Fatal(err)
				}
				r = between.after(r)
				if n := faulty.Flush(); n != 1 {
					t.Fatalf("%d late writes, want 1", n)
				}
				if late.op == OpAdvance {
					r = late.after(r)
				}
				f.holds(t, r)
			})
		}
	}
	t.Run("create after create", func(t *testing.T) {
		first, second := f.record(t, t.Name()), f.record(t, t.Name())
		faulty.Plan(Once(OpCreate, LateWrite))
		is(t, faulty.Create(t.Context(), []sequence.Record{first})[0], sequence.ErrUnknownOutcome)
		f.create(t, second)
		faulty.Flush()
		f.holds(t, second)
	})
}
