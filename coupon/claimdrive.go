package coupon

import (
	"context"
	"errors"

	"github.com/tallystick/tallystick/shard"
)

// drive finishes a pending claim: it binds the claim's coupon on its own shard,
// or another one if somebody has that, and then tells the user's shard.
func (s *Service) drive(ctx context.Context, c Campaign, claim Claim, call Call) (Result, error) {
	for range claimTries {
		result, err := s.bindClaimed(ctx, c, claim, call)
		if err == nil {
			s.reach(StepClaimBound, nil)
			err = s.finish(ctx, claim, result.Coupon)
			s.reach(StepClaimDone, err)
			return result, err
		}
		if !errors.Is(err, errLost) {
			return Result{}, err
		}
		if claim, err = s.chooseAnother(ctx, c, claim); err != nil {
			return Result{}, err
		}
	}
	return Result{}, ErrPoolRefilling
}

// bindClaimed binds the claim's coupon on its shard unless it is bound to the
// claim already. It fails with errLost if somebody else has the coupon.
func (s *Service) bindClaimed(ctx context.Context, c Campaign, claim Claim, call Call) (Result, error) {
	var result Result
	err := s.writeAgain(ctx, claim.Coupon, func(tx Tx) (err error) {
		result, err = bindClaimedIn(tx, c, claim, call)
		return err
	})
	return result, err
}

func bindClaimedIn(tx Tx, c Campaign, claim Claim, call Call) (Result, error) {
	now, err := tx.Coupon(claim.Coupon)
	if err != nil {
		return Result{}, err
	}
	if now.Status != Available { // perhaps another process was faster for this very claim
		mine, err := claimedBy(tx, claim)
		if err == nil && !mine {
			err = errLost
		}
		return Result{Coupon: now, At: tx.Now()}, err
	}
	next, err := c.issue(Ref{now.ID, now.Code}, claim.User, "", tx.Now())
	if err != nil {
		return Result{}, err
	}
	return Result{Coupon: next, At: tx.Now()}, put(tx, decided{next: next, event: WasClaimed}, call)
}

// claimedBy reports whether the coupon was bound by this very claim.
func claimedBy(tx Tx, claim Claim) (bool, error) {
	events, err := tx.Events(claim.Coupon)
	for _, e := range events {
		if e.Type == WasClaimed {
			return e.User == claim.User && e.Request == claim.Request, err
		}
	}
	return false, err
}

// finish tells the user's shard that the claim or bind is done.
func (s *Service) finish(ctx context.Context, claim Claim, got Coupon) error {
	return s.store.Write(ctx, shard.Text(claim.User), func(tx Tx) error {
		finished, err := tx.FinishClaim(claim)
		if err == nil && !finished && claim.Number == 0 {
			err = bindAgain(tx, claim)
		}
		if err != nil {
			return err
		}
		return tx.Keep(got)
	})
}

// chooseAnother gives a pending claim another coupon, after its own was seen
// with somebody else. If there is none at all the claim ends: it is as if it had
// come a moment later.
func (s *Service) chooseAnother(ctx context.Context, c Campaign, claim Claim) (Claim, error) {
	ref, err := s.pool.takeElsewhere(ctx, c, shard.Text(claim.User).Bucket().Shard())
	gone := errors.Is(err, ErrPoolExhausted)
	if err != nil && !gone {
		return claim, err
	}
	next := claim
	next.Coupon = ref.ID
	var moved bool
	err = s.store.Write(ctx, shard.Text(claim.User), func(tx Tx) (err error) {
		if gone {
			moved, err = tx.DropClaim(claim)
		} else {
			moved, err = tx.MoveClaim(next, claim.Coupon)
		}
		return err
	})
	switch {
	case err != nil:
		return claim, err
	case !moved: // another process drives it
		return claim, ErrInProgress
	case gone:
		return claim, ErrPoolExhausted
	}
	s.reach(StepClaimMoved, nil)
	return next, nil
}
