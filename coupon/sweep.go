package coupon

import (
	"context"
	"errors"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// sweepPage is how many claims and batches of a shard are driven on in a turn.
const sweepPage = 100

// sweeper finishes what processes left behind that died between two steps. Every
// service has one; what they do twice is done once.
func (s *Service) sweeper(ctx context.Context) {
	for wait(ctx, s.patience/sweepsPerWait) {
		for _, at := range shard.All() {
			if err := s.Sweep(ctx, at, s.patience); err != nil && ctx.Err() == nil {
				s.log.Warn("sweep", "shard", at, "error", err)
			}
		}
	}
}

// Sweep drives on the claims, binds and batches of a shard that have been
// pending for that long. The first failure is returned after all were tried.
func (s *Service) Sweep(ctx context.Context, at shard.Shard, after time.Duration) error {
	before := time.Now().Add(-after)
	var claims []Claim
	var batches []Batch
	err := s.store.Read(ctx, at, func(rows Rows) (err error) {
		if claims, err = rows.Pending(before, sweepPage); err != nil {
			return err
		}
		batches, err = rows.PendingBatches(before, sweepPage)
		return err
	})
	if len(claims)+len(batches) > 0 {
		s.reach(StepSweepFound, nil)
	}
	w := newClaimSweep()
	w.driveOn = func(c Claim) error { return s.driveOn(ctx, c) }
	w.pending = func(n int) (page []Claim, err error) {
		err = s.store.Read(ctx, at, func(rows Rows) (err error) {
			page, err = rows.Pending(before, n)
			return err
		})
		return page, err
	}
	if failed := w.run(claims); err == nil {
		err = failed
	}
	for _, b := range batches {
		if failed := s.operateOn(ctx, b); err == nil {
			err = failed
		}
	}
	return err
}

// driveOn finishes a pending claim or bind. A refusal is a finish: the claim is
// gone then.
func (s *Service) driveOn(ctx context.Context, claim Claim) error {
	call := Call{Actor: "sweeper", User: claim.User, Request: claim.Request}
	if claim.Number == 0 {
		_, err := s.driveBind(ctx, claim, call)
		return unlessRefused(err)
	}
	c, err := s.campaigns.get(ctx, claim.Campaign)
	if err != nil {
		return err
	}
	_, err = s.drive(ctx, c, claim, call)
	return unlessRefused(err)
}

// unlessRefused returns err unless it is a refusal that repeating would not
// change.
func unlessRefused(err error) error {
	if r, ok := errors.AsType[*Refusal](err); ok && !r.Retryable {
		return nil
	}
	return err
}

// wait waits, and reports false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
