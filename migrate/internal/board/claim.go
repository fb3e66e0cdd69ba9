package board

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// Claim implements [migrate.Board]. It fails with [migrate.ErrWrongStatus]
// unless the status is IN_PROGRESS: a claim that came in after the last one
// ended would be live in a migration that is stopped.
func (s *State) Claim(ctx context.Context, req migrate.ClaimRequest) (c migrate.Claim, err error) {
	if err := s.open(); err != nil {
		return c, wrap("claim", err)
	}
	sent := time.Now()
	err = s.update(ctx, "claim", func(b *board) error {
		if b.header.Status != migrate.InProgress {
			return fmt.Errorf("it is %s: %w", b.header.Status, migrate.ErrWrongStatus)
		}
		e, err := b.next(req)
		if err != nil {
			return err
		}
		b.header.Epoch++
		e.Holder = holder{Worker: req.Worker, Token: rand.Text(), Epoch: b.header.Epoch, Until: b.now.Add(req.TTL)}
		c = migrate.Claim{Pass: req.Pass, Slot: e.Slot, Token: e.Holder.Token, Epoch: e.Holder.Epoch,
			TTL: req.TTL, Deadline: sent.Add(req.TTL - req.TTL/10), Progress: e.Progress}
		return b.put(e.key(), e)
	})
	return c, err
}

// next returns the slot to claim.
func (b *board) next(req migrate.ClaimRequest) (*entry, error) {
	all, err := b.entries()
	if err != nil {
		return nil, err
	}
	within := Intersect(req.Within, b.span(req.Pass))
	taken, bases, parts := map[int64]bool{}, map[int64]*entry{}, []*entry(nil)
	for _, e := range all {
		free := !e.held(b.now) && !e.Done
		switch {
		case e.Pass != req.Pass:
		case e.Slot.Below == nil && free:
			bases[e.Slot.Index] = e
		case e.Slot.Below == nil:
			taken[e.Slot.Index] = true
		case free && within.Lo <= e.Slot.Index && e.Slot.Index < within.Hi:
			parts = append(parts, e)
		}
	}
	if len(parts) > 0 {
		return slices.MinFunc(parts, func(a, c *entry) int { return inOrder(a, c, req.Oldest) }), nil
	}
	i, ok := FirstFree(b.header.Finished[req.Pass], taken, within, req.Oldest)
	if !ok {
		return nil, migrate.ErrNoSlot
	}
	if e := bases[i]; e != nil {
		return e, nil
	}
	return &entry{Pass: req.Pass, Slot: migrate.Slot{Index: i}}, nil
}

// inOrder compares parts: by their index in the order of the walk, then by
// which was split off first.
func inOrder(a, b *entry, oldest bool) int {
	byIndex := cmp.Compare(b.Slot.Index, a.Slot.Index)
	if oldest {
		byIndex = -byIndex
	}
	return cmp.Or(byIndex, cmp.Compare(a.Born, b.Born))
}

// holding returns the entry of a claim that is held.
func (b *board) holding(c migrate.Claim) (*entry, error) {
	e := new(entry)
	if err := b.get(entryKey(c.Pass, c.Slot), e); err != nil {
		return nil, err
	}
	if !e.held(b.now) || e.Holder.Token != c.Token || e.Holder.Epoch != c.Epoch {
		return nil, migrate.ErrNotHeld
	}
	return e, nil
}

// owning does a change as the owner of c. Its error names the slot.
func (s *State) owning(ctx context.Context, op string, c migrate.Claim, f func(*board, *entry) error) error {
	if err := s.open(); err != nil {
		return wrap(op, err)
	}
	return s.update(ctx, op+" "+s.axis.Name(c.Slot), func(b *board) error {
		e, err := b.holding(c)
		if err != nil {
			return err
		}
		return f(b, e)
	})
}

// Renew implements [migrate.Board].
func (s *State) Renew(ctx context.Context, c migrate.Claim) error {
	return s.owning(ctx, "renew", c, func(b *board, e *entry) error {
		e.Holder.Until = b.now.Add(c.TTL)
		return b.put(e.key(), e)
	})
}

// Save implements [migrate.Board].
func (s *State) Save(ctx context.Context, c migrate.Claim, p migrate.Progress) (wanted bool, err error) {
	err = s.owning(ctx, "save", c, func(b *board, e *entry) error {
		if !p.Lo.Equal(e.Progress.Lo) {
			return behind("its end")
		}
		if err := e.advance(p); err != nil {
			return err
		}
		wanted = b.now.Before(b.header.Wanted)
		e.Holder.Until = b.now.Add(c.TTL)
		return b.put(e.key(), e)
	})
	return wanted, err
}

// advance sets the progress to p unless that is behind it. Keys cannot be
// compared here; the rows read tell which is further.
func (e *entry) advance(p migrate.Progress) error {
	now := e.Progress
	if p.Counts.Read < now.Counts.Read || p.Counts.Read == now.Counts.Read && e.Saved && !p.Last.Equal(now.Last) {
		return behind("its progress")
	}
	e.Progress, e.Saved = p, true
	return nil
}

// behind is the error of a request that was overtaken by a later one of the
// same claim.
func behind(what string) error {
	return fmt.Errorf("%s is behind what was saved: %w", what, migrate.ErrNotHeld)
}

// Split implements [migrate.Board]. It takes the wish of an idle worker as
// granted.
func (s *State) Split(ctx context.Context, c migrate.Claim, p migrate.Progress, rest migrate.Slot, begin migrate.Progress) error {
	return s.owning(ctx, "split", c, func(b *board, e *entry) error {
		if rest.Index != c.Slot.Index || rest.Below == nil || !rest.Below.Equal(p.Lo) {
			return fmt.Errorf("%s is not what is left of it", s.axis.Name(rest))
		}
		part := &entry{Pass: c.Pass, Slot: rest, Split: true, Progress: begin}
		repeated := b.tx.Get(part.key()) != nil
		if repeated && !p.Lo.Equal(e.Progress.Lo) {
			return behind("its end")
		}
		if err := e.advance(p); err != nil {
			return err
		}
		e.Split, e.Holder.Until = true, b.now.Add(c.TTL)
		if !repeated {
			b.header.Epoch++
			b.header.Wanted, part.Born = time.Time{}, b.header.Epoch
			if err := b.put(part.key(), part); err != nil {
				return err
			}
		}
		return b.put(e.key(), e)
	})
}

// Want implements [migrate.Board].
func (s *State) Want(ctx context.Context, d time.Duration) error {
	if err := s.open(); err != nil {
		return wrap("want", err)
	}
	return s.update(ctx, "want", func(b *board) error {
		if until := b.now.Add(d); until.After(b.header.Wanted) {
			b.header.Wanted = until
		}
		return nil
	})
}
