package board

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// View implements [migrate.Switch]. A pod that is not open may look, too.
func (s *State) View(ctx context.Context) (v migrate.View, err error) {
	err = s.view(ctx, "view", func(b *board) error {
		all, err := b.entries()
		if err != nil {
			return err
		}
		v = b.glance(all)
		return nil
	})
	return v, err
}

func (b *board) glance(all []*entry) migrate.View {
	h := b.header
	v := migrate.View{Plan: b.plan, Status: h.Status, Generation: h.Generation, Phase: h.Phase,
		Finished: map[migrate.Pass][]migrate.Span{}, Counts: h.Counts, Now: b.now, Started: h.Started}
	for p, spans := range h.Finished {
		v.Finished[p] = spans
	}
	if b.now.Before(h.Keeper.Until) {
		v.Keeper = h.Keeper.Name
	}
	slices.SortStableFunc(all, func(a, c *entry) int { return inOrder(a, c, false) })
	for _, e := range all {
		if e.held(b.now) {
			v.Live = append(v.Live, migrate.Held{Pass: e.Pass, Slot: e.Slot, Worker: e.Holder.Worker, Epoch: e.Holder.Epoch, Counts: e.Progress.Counts})
		}
		if e.Slot.Below != nil && !e.Done {
			v.Open = append(v.Open, e.Slot)
		}
		if !e.Done {
			v.Counts = v.Counts.Plus(e.Progress.Counts)
		}
	}
	return v
}

// Move implements [migrate.Switch].
func (s *State) Move(ctx context.Context, generation uint64, from, to migrate.Status) error {
	if err := s.open(); err != nil {
		return wrap("move", err)
	}
	return s.update(ctx, fmt.Sprintf("move from %s to %s", from, to), func(b *board) error {
		if b.header.Status != from || b.header.Generation != generation {
			return fmt.Errorf("it is %s in generation %d: %w", b.header.Status, b.header.Generation, migrate.ErrWrongStatus)
		}
		if err := b.allows(Edge(from, to)); err != nil {
			return err
		}
		b.header.Status = to
		if to == migrate.ToStart {
			b.header.Generation++
		}
		if to == migrate.InProgress && b.header.Started.IsZero() {
			b.header.Started = b.now
		}
		return nil
	})
}

// allows fails unless the condition of an edge holds.
func (b *board) allows(c Condition) error {
	if c == Never {
		return fmt.Errorf("there is no such change: %w", migrate.ErrWrongStatus)
	}
	if c == Always {
		return nil
	}
	if n, err := b.live(); err != nil || n > 0 {
		return firstOf(err, fmt.Errorf("%d slots are being worked on: %w", n, migrate.ErrWrongStatus))
	}
	if c == Complete && !b.complete() {
		return fmt.Errorf("not everything is finished: %w", migrate.ErrWrongStatus)
	}
	return nil
}

// complete reports whether nothing is left to do.
func (b *board) complete() bool {
	f := b.header.Finished
	return b.header.Phase == migrate.PhaseDone && f[migrate.Copying].Covers(b.plan.Slots) && f[migrate.Sweeping].Covers(b.plan.Sweep)
}

// Lead implements [migrate.Switch]. The names of keepers must differ: who
// comes with the name of the one that leads is taken for it.
func (s *State) Lead(ctx context.Context, name string, ttl time.Duration) (t migrate.Term, err error) {
	if err := s.open(); err != nil {
		return t, wrap("lead", err)
	}
	err = s.update(ctx, "lead", func(b *board) error {
		k := &b.header.Keeper
		leads := b.now.Before(k.Until)
		if leads && k.Name != name {
			return fmt.Errorf("%s leads: %w", k.Name, migrate.ErrNotHeld)
		}
		if !leads {
			b.header.Epoch++
			*k = keeper{Name: name, Epoch: b.header.Epoch}
		}
		k.Until = b.now.Add(ttl)
		t = migrate.Term{Keeper: name, Epoch: k.Epoch}
		return nil
	})
	return t, err
}

// leading does a change as the Keeper of a term.
func (s *State) leading(ctx context.Context, op string, t migrate.Term, f func(*board) error) error {
	if err := s.open(); err != nil {
		return wrap(op, err)
	}
	return s.update(ctx, op, func(b *board) error {
		k := b.header.Keeper
		if !b.now.Before(k.Until) || k.Name != t.Keeper || k.Epoch != t.Epoch {
			return migrate.ErrNotHeld
		}
		return f(b)
	})
}

// Survey implements [migrate.Switch].
func (s *State) Survey(ctx context.Context, t migrate.Term, found migrate.Survey) error {
	return s.leading(ctx, "survey", t, func(b *board) error {
		switch {
		case b.header.Status != migrate.ToStart:
			return fmt.Errorf("it is %s: %w", b.header.Status, migrate.ErrWrongStatus)
		case b.plan.Surveyed:
			return nil
		}
		b.plan.Slots, b.plan.Sweep, b.plan.Rows, b.plan.Surveyed = found.Slots, found.Sweep, found.Rows, true
		return b.put(keyPlan, b.plan)
	})
}

// Advance implements [migrate.Switch]. The phase it is in already is fine; one
// from before is refused with [migrate.ErrWrongStatus].
func (s *State) Advance(ctx context.Context, t migrate.Term, to migrate.Phase) error {
	return s.leading(ctx, "advance to "+string(to), t, func(b *board) error {
		if slices.Index(phases, to) < slices.Index(phases, b.header.Phase) {
			return fmt.Errorf("the phase is %s: %w", b.header.Phase, migrate.ErrWrongStatus)
		}
		b.header.Phase = to
		return nil
	})
}

// Resign implements [migrate.Switch].
func (s *State) Resign(ctx context.Context, t migrate.Term) error {
	return s.leading(ctx, "resign", t, func(b *board) error {
		b.header.Keeper = keeper{}
		return nil
	})
}
