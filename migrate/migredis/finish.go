package migredis

import (
	"context"
	"encoding/json"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/internal/board"
)

// Finish implements [migrate.Board]. It can be repeated.
func (s *State) Finish(ctx context.Context, c migrate.Claim, p migrate.Progress, empty migrate.Span) error {
	plan, err := s.written(ctx)
	if err != nil {
		return err
	}
	slots := of(plan, c.Pass)
	empty = board.Intersect(empty, slots)
	a := s.owner(c)
	if err := a.at(p, migrate.Finished); err != nil {
		return err
	}
	line, err := json.Marshal(storedLine{Pass: c.Pass, Slot: s.axis.Name(c.Slot), Counts: p.Counts, Digest: p.Digest.String(), Epoch: c.Epoch, Plan: plan.Hash})
	if err != nil {
		return err
	}
	a["line"], a["counts"] = string(line), countTexts(p.Counts)
	a["lo"], a["hi"], a["oldest"] = empty.Lo, empty.Hi, s.plan.Oldest()
	a["slots_lo"], a["slots_hi"] = slots.Lo, slots.Hi
	_, err = s.owning(ctx, "finish", c, a)
	return err
}

// Release implements [migrate.Board]. It can be repeated.
func (s *State) Release(ctx context.Context, c migrate.Claim) error {
	_, err := s.owning(ctx, "release", c, s.owner(c))
	return err
}
