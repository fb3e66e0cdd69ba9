package seqtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// call is one call of each method, with its error.
var calls = map[seqtest.Op]func(context.Context, sequence.Store) error{
	seqtest.OpCreate: func(ctx context.Context, s sequence.Store) error {
		return s.Create(ctx, make([]sequence.Record, 1))[0]
	},
	seqtest.OpLoad: func(ctx context.Context, s sequence.Store) error { _, err := s.Load(ctx, "s"); return err },
	seqtest.OpAdvance: func(ctx context.Context, s sequence.Store) error {
		_, err := s.Advance(ctx, sequence.Advance{})
		return err
	},
	seqtest.OpSwap: func(ctx context.Context, s sequence.Store) error {
		_, err := s.Swap(ctx, "", sequence.Record{})
		return err
	},
	seqtest.OpList:       func(ctx context.Context, s sequence.Store) error { _, _, _, err := s.List(ctx, "", "", 1); return err },
	seqtest.OpGeneration: func(ctx context.Context, s sequence.Store) error { _, err := s.Generation(ctx); return err },
	seqtest.OpBump:       func(ctx context.Context, s sequence.Store) error { return s.Bump(ctx) },
}

func TestCutOffReachesEveryMethodUntilItEnds(t *testing.T) {
	for op, call := range calls {
		t.Run(string(op), func(t *testing.T) {
			store := seqtest.NewFaulty(seqtest.NewMemory())
			store.Plan(seqtest.Always(seqtest.CutOff))
			if err := call(t.Context(), store); !errors.Is(err, sequence.ErrUnavailable) {
				t.Fatalf("error = %v, want ErrUnavailable", err)
			}
			store.Plan(nil)
			if err := call(t.Context(), store); errors.Is(err, sequence.ErrUnavailable) {
				t.Fatalf("error = %v after the cut-off", err)
			}
		})
	}
}

func TestDelayWaitsAndContextEndsIt(t *testing.T) {
	for op, call := range calls {
		synctest.Test(t, func(t *testing.T) {
			store := seqtest.NewFaulty(seqtest.NewMemory())
			store.Plan(seqtest.On(op, seqtest.Fault{Delay: 3 * time.Second}))
			begin := time.Now()
			if err := call(t.Context(), store); errors.Is(err, sequence.ErrUnavailable) {
				t.Fatalf("%s: %v", op, err)
			}
			if d := time.Since(begin); d != 3*time.Second {
				t.Fatalf("%s took %v, want 3s", op, d)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := call(ctx, store)
			if !errors.Is(err, sequence.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%s: error = %v, want ErrUnavailable and DeadlineExceeded", op, err)
			}
		})
	}
}

func TestReplyThatLingersTooLongLeavesWritesUnknown(t *testing.T) {
	for op, call := range calls {
		synctest.Test(t, func(t *testing.T) {
			store := seqtest.NewFaulty(seqtest.NewMemory())
			store.Plan(seqtest.On(op, seqtest.Fault{Linger: 3 * time.Second}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			want := sequence.ErrUnavailable
			if op.Writes() {
				want = sequence.ErrUnknownOutcome
			}
			if err := call(ctx, store); !errors.Is(err, want) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%s: error = %v, want %v", op, err, want)
			}
		})
	}
}

func TestNthCountsCallsOfItsOpOnly(t *testing.T) {
	store := seqtest.NewFaulty(seqtest.NewMemory())
	store.Plan(seqtest.Nth(seqtest.OpBump, 2, seqtest.LostReply))
	for i, want := range []error{nil, sequence.ErrUnknownOutcome, nil} {
		if _, err := store.Generation(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := store.Bump(t.Context()); !errors.Is(err, want) {
			t.Fatalf("bump %d: %v, want %v", i, err, want)
		}
	}
	if g, err := store.Generation(t.Context()); err != nil || g != 3 {
		t.Fatalf("generation = %d, %v, want 3: a lost reply is of a write that happened", g, err)
	}
}
