package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/rollout"
	"github.com/tallystick/tallystick/rollout/rollouttest"
)

func TestPhasesAreParsedAsPrinted(t *testing.T) {
	for p := rollout.OldOnly; p <= rollout.NewOnly; p++ {
		if got, err := rollout.ParsePhase(p.String()); got != p || err != nil {
			t.Errorf("%s: %s, %v", p, got, err)
		}
	}
	if _, err := rollout.ParsePhase("new"); err == nil {
		t.Error("new is taken for a phase")
	}
}

func TestDeathAtEveryStepIsRepaired(t *testing.T) {
	ctx := t.Context()
	for name, op := range map[string]func(*rollout.Store[string, int]) error{
		"put":    func(s *rollout.Store[string, int]) error { return s.Put(ctx, "a", 2) },
		"delete": func(s *rollout.Store[string, int]) error { return s.Delete(ctx, "a") },
		"drain":  func(s *rollout.Store[string, int]) error { _, err := s.Drain(ctx); return err },
	} {
		for step, reached := 0, true; reached; step++ {
			t.Run(fmt.Sprintf("%s, step %d", name, step), func(t *testing.T) {
				reached = false
				w := newWorld(rollout.WriteBoth)
				leaveNotes(t, w)
				dead := w.killAt(step)
				w.do(func() error { return op(w.store) })
				reached = *dead
				w.wantEqual(t)
			})
		}
	}
}

// leaveNotes leaves a row and a deletion that new does not have.
func leaveNotes(t *testing.T, w *world) {
	w.store.Put(t.Context(), "b", 1)
	w.plan = func(call string, _ bool) error {
		if call == "new.Put" || call == "new.Bury" {
			return errPlanted
		}
		return nil
	}
	for _, err := range []error{w.store.Put(t.Context(), "a", 1), w.store.Delete(t.Context(), "b")} {
		if err != nil {
			t.Fatalf("a failure of new reached the caller: %v", err)
		}
	}
	w.plan = nil
	if s := w.store.Stats(); s.NewFailed != 2 || s.Behind != 2 {
		t.Fatalf("stats %+v, want 2 failed and 2 behind", s)
	}
}

func TestCompareTellsTheKindOfDifference(t *testing.T) {
	for _, c := range []struct {
		name string
		old  int64 // version; 0: no row
		new  rollout.Held[int]
		want rollout.Kind
	}{
		{"neither has it", 0, rollout.Held[int]{}, rollout.Same},
		{"deleted on both", 0, rollout.Held[int]{Row: rollout.Row[int]{Version: 3}, Deleted: true}, rollout.Same},
		{"the same row", 1, rollout.Held[int]{Row: rollout.Row[int]{Value: 7, Version: 1}}, rollout.Same},
		{"new has nothing", 1, rollout.Held[int]{}, rollout.Behind},
		{"new has a tombstone above", 1, rollout.Held[int]{Row: rollout.Row[int]{Version: 2}, Deleted: true}, rollout.Ahead},
		{"new has a newer row", 1, rollout.Held[int]{Row: rollout.Row[int]{Value: 7, Version: 2}}, rollout.Ahead},
		{"old has nothing", 0, rollout.Held[int]{Row: rollout.Row[int]{Value: 7, Version: 1}}, rollout.Extra},
		{"other content", 1, rollout.Held[int]{Row: rollout.Row[int]{Value: 8, Version: 1}}, rollout.Content},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(rollout.Compare)
			if c.old > 0 {
				w.old.Put(t.Context(), "a", 7, rollout.Terms{})
			}
			if c.new.Deleted {
				w.new.Bury(t.Context(), "a", c.new.Version)
			} else if c.new.Version > 0 {
				w.new.Put(t.Context(), "a", c.new.Row)
			}
			got := rollout.Same
			s := rollout.New(w.old, w.new, rollout.Options[string, int]{
				Phase:        func(context.Context) rollout.Phase { return rollout.Compare },
				OnDifference: func(_ context.Context, d rollout.Difference[string]) { got = d.Kind },
			})
			if _, found, err := s.Get(t.Context(), "a"); err != nil || found != (c.old > 0) {
				t.Errorf("found %t, %v", found, err)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestNewOnlyWritesAtOnceLoseNone(t *testing.T) {
	w := newWorld(rollout.NewOnly)
	const writers, each = 4, 50
	var done sync.WaitGroup
	for i := range writers {
		done.Go(func() {
			for n := 0; n < each; {
				err := w.store.Put(context.Background(), "a", i)
				if err == nil {
					n++
				} else if !errors.Is(err, rollout.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	if got := w.new.Held()["a"].Version; got != writers*each {
		t.Errorf("version %d after %d acknowledged writes", got, writers*each)
	}
}

func TestNewOnlyDoesNotRepeatAWriteWithoutAnswer(t *testing.T) {
	w := newWorld(rollout.NewOnly)
	w.plan = func(call string, done bool) error {
		if call == "new.Put" && !done {
			return rollouttest.ErrLate
		}
		return nil
	}
	if err := w.store.Put(t.Context(), "a", 1); !errors.Is(err, rollout.ErrUnknownOutcome) {
		t.Errorf("got %v, want an unknown outcome", err)
	}
	w.plan = nil
	if w.landAll(); w.new.Held()["a"].Version != 1 {
		t.Errorf("it was sent more than once: %+v", w.new.Held())
	}
}

func TestDrainOfANoteWithoutVersionBuriesWhatNewHas(t *testing.T) {
	w := newWorld(rollout.WriteBoth)
	w.new.Put(t.Context(), "a", rollout.Row[int]{Value: 1, Version: 1})
	s := rollout.New(keysOnly{w.old}, w.new, rollout.Options[string, int]{Phase: func(context.Context) rollout.Phase { return rollout.WriteBoth }})
	w.old.Put(t.Context(), "a", 1, rollout.Terms{})
	w.old.Delete(t.Context(), "a", rollout.Terms{Note: true})
	if n, err := s.Drain(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if h := w.new.Held()["a"]; !h.Deleted || h.Version != 2 {
		t.Errorf("new has %+v, want a tombstone of version 2", h)
	}
}

// keysOnly is an old side whose notes have no versions.
type keysOnly struct {
	rollout.OldSide[string, int]
}

func (o keysOnly) Pending(ctx context.Context, after string, limit int) ([]rollout.Note[string], error) {
	notes, err := o.OldSide.Pending(ctx, after, limit)
	for i := range notes {
		notes[i].Version = 0
	}
	return notes, err
}

func TestReaderInNewFirstSeesItsOwnWriteThatNewDidNotTake(t *testing.T) {
	for _, remember := range []int{100, 1} {
		w := newWorld(rollout.NewFirst)
		w.remember = remember
		w.restart()
		for _, key := range keys {
			w.store.Put(t.Context(), key, 1)
		}
		w.plan = func(call string, _ bool) error {
			if call == "new.Put" {
				return errPlanted
			}
			return nil
		}
		for _, key := range keys {
			if err := w.store.Put(t.Context(), key, 2); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			w.plan = nil
			for _, key := range keys {
				if v, _, err := w.store.Get(t.Context(), key); v != 2 || err != nil {
					t.Errorf("remembering %d: %s is %d, %v, want 2", remember, key, v, err)
				}
			}
			w.wantEqual(t)
		}
		if s := w.store.Stats(); s.Behind != 0 || s.Drained != int64(len(keys)) {
			t.Errorf("after a drain: %+v", s)
		}
		before := w.store.Stats().Fallbacks
		w.store.Get(t.Context(), "a")
		if w.store.Stats().Fallbacks != before {
			t.Error("old is read after a drain")
		}
	}
}
