package coupon

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// Bind gives a bearer coupon to a user. The user's request number makes it
// happen once per campaign; binds do not count towards the campaign's limit.
//
// Where coupon and user are on one shard it is one transaction. Otherwise it
// takes three, on the user's shard (U) and the coupon's (C). If the process dies
//
//	after U, bind is PENDING:  the sweeper does the rest after a minute; the user
//	                           asking again does it at once
//	after C, coupon is bound:  likewise, and finds the coupon the user's
//	after U, bind is done:     everything happened
//
// Where C refuses, the pending bind is removed; if that fails the sweeper meets
// the same refusal and removes it.
func (s *Service) Bind(ctx context.Context, t Target, call Call) (Result, error) {
	if err := check(t, call, "user_id", "request_no"); err != nil {
		return Result{}, err
	}
	var c Coupon
	err := s.store.Read(ctx, t.key(), func(rows Rows) (err error) {
		c, err = t.find(rows)
		return err
	})
	if err == nil && c.Status == Available {
		err = ErrUnavailable
	}
	if err != nil {
		return Result{}, s.refusal(err)
	}
	result, err := s.bind(ctx, c, call)
	if errors.Is(err, shard.ErrDuplicate) {
		result, err = s.bind(ctx, c, call) // the same request, at the same time
	}
	return result, s.refusal(err)
}

func (s *Service) bind(ctx context.Context, c Coupon, call Call) (Result, error) {
	home := shard.Text(call.User)
	claim := Claim{User: call.User, Campaign: c.Campaign, Request: call.Request, Coupon: c.ID}
	claim.Done = shard.Same(home, c.ID)
	var result Result
	var before *Claim
	err := s.writeAgain(ctx, home, func(tx Tx) (err error) {
		if before, err = boundBefore(tx, claim); err != nil || before != nil {
			return err
		}
		claim.At = tx.Now()
		if claim.Done {
			if result, err = s.changeIn(tx, Target{ID: c.ID}, call, bindTo(call.User)); err != nil {
				return err
			}
		}
		return tx.PutClaim(claim)
	})
	if err != nil || before == nil && claim.Done {
		s.reach(StepBindDone, err)
		return result, err
	}
	if before != nil && before.Done {
		got, at, err := s.coupon(ctx, c.ID)
		return Result{got, true, at}, err
	}
	s.reach(StepBindPending, nil)
	result, err = s.driveBind(ctx, claim, call)
	result.Replayed = result.Replayed || err == nil && before != nil
	return result, err
}

// boundBefore returns the bind of the same request, and refuses a request that
// was about another coupon.
func boundBefore(tx Tx, claim Claim) (*Claim, error) {
	made, err := tx.Claims(claim.User, claim.Campaign)
	for _, m := range made {
		if m.Request != claim.Request {
			continue
		}
		if m.Coupon != claim.Coupon || m.Number != 0 {
			return nil, ErrMismatch.With("request %s was about coupon %d", m.Request, m.Coupon)
		}
		return &m, err
	}
	return nil, err
}

// bindAgain puts a bind that was made after all where another process has removed
// it: that met a refusal which has since gone, like a hold.
func bindAgain(tx Tx, claim Claim) error {
	made, err := tx.Claims(claim.User, claim.Campaign)
	if err != nil || slices.ContainsFunc(made, func(m Claim) bool { return m.Request == claim.Request }) {
		return err
	}
	claim.Done, claim.At = true, tx.Now()
	return tx.PutClaim(claim)
}

// bindTo decides what binding to a user comes to.
func bindTo(user string) decision {
	return func(c Coupon, now time.Time) (decided, error) { return c.bind(now, user) }
}

// driveBind finishes a pending bind, or removes it if the coupon is not to be
// had.
func (s *Service) driveBind(ctx context.Context, claim Claim, call Call) (Result, error) {
	result, err := s.change(ctx, Target{ID: claim.Coupon}, call, bindTo(claim.User))
	if err == nil {
		s.reach(StepBindBound, nil)
		err = s.finish(ctx, claim, result.Coupon)
		s.reach(StepBindDone, err)
		return result, err
	}
	if _, refused := errors.AsType[*Refusal](err); refused && !errors.Is(err, ErrInProgress) {
		s.reach(StepBindRefused, nil)
		gone := s.store.Write(ctx, shard.Text(claim.User), func(tx Tx) error {
			_, err := tx.DropClaim(claim)
			return err
		})
		if gone != nil {
			s.log.Warn("pending bind stays for the sweeper", "coupon", claim.Coupon, "error", gone)
		}
	}
	return result, err
}
