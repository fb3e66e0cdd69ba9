package coupon

import (
	"context"
	"errors"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// How long an order may hold a coupon.
const (
	DefaultHold = 15 * time.Minute
	MaxHold     = 24 * time.Hour
)

// Redeem uses a coupon for an order. The order's repetition gets the first
// result again, for ever; after a void it gets [ErrRedemptionVoided].
//
// If the process dies within the transaction nothing was written; if it dies
// after the commit the event in the same transaction brings the wallet on
// another shard up to date.
func (s *Service) Redeem(ctx context.Context, t Target, call Call) (Result, error) {
	if err := check(t, call, "order_no"); err != nil {
		return Result{}, err
	}
	result, err := s.change(ctx, t, call, func(c Coupon, now time.Time) (decided, error) {
		return c.redeem(now, call.User, call.Order)
	})
	// The order redeemed the coupon once before, and does not hold it now.
	if errors.Is(err, shard.ErrDuplicate) {
		return Result{}, ErrRedemptionVoided
	}
	return result, s.refusal(err)
}

// Reserve holds a coupon for an order for ttl, so that nobody else redeems it
// while the order is being paid. The order's repetition gets its hold as it is.
func (s *Service) Reserve(ctx context.Context, t Target, call Call, ttl time.Duration) (Result, error) {
	if err := check(t, call, "order_no"); err != nil {
		return Result{}, err
	}
	if ttl < time.Second || ttl > MaxHold {
		return Result{}, invalidField("ttl_seconds", "ttl_seconds is %v: want 1 to %v", ttl.Seconds(), MaxHold.Seconds())
	}
	result, err := s.change(ctx, t, call, func(c Coupon, now time.Time) (decided, error) {
		return c.reserve(now, call.User, call.Order, ttl)
	})
	return result, s.refusal(err)
}

// Release gives up an order's hold.
func (s *Service) Release(ctx context.Context, t Target, call Call) (Result, error) {
	if err := check(t, call, "order_no"); err != nil {
		return Result{}, err
	}
	result, err := s.change(ctx, t, call, func(c Coupon, now time.Time) (decided, error) {
		return c.release(now, call.User, call.Order)
	})
	return result, s.refusal(err)
}

// Void takes the redemption by an order back, by the coupon's void policy. The
// request number makes it happen once.
func (s *Service) Void(ctx context.Context, id ID, call Call) (Result, error) {
	t := Target{ID: id}
	if err := check(t, call, "order_no", "request_no"); err != nil {
		return Result{}, err
	}
	result, err := s.void(ctx, t, call)
	if errors.Is(err, shard.ErrDuplicate) { // the same request, at the same time
		result, err = s.void(ctx, t, call)
	}
	return result, s.refusal(err)
}

func (s *Service) void(ctx context.Context, t Target, call Call) (Result, error) {
	return s.changeBy(ctx, t, func(tx Tx) (Result, error) { return s.voidIn(tx, t, call) })
}

// voidIn looks for the request in the ledger: it may have been done and the coupon
// redeemed again since. The ledger is read after the coupon, which nobody changes
// from then on.
func (s *Service) voidIn(tx Tx, t Target, call Call) (Result, error) {
	return s.changeIn(tx, t, call, func(c Coupon, now time.Time) (decided, error) {
		events, err := tx.Events(t.ID)
		if err != nil {
			return decided{}, err
		}
		before, err := voidedBefore(events, call)
		switch {
		case err != nil:
			return decided{}, err
		case before:
			return c.replay(), nil
		}
		return c.void(now, call.Order)
	})
}

// voidedBefore reports whether the ledger has this very void. It refuses a
// request that was made for another order, and one for a redemption that another
// request has voided.
func voidedBefore(events []Event, call Call) (bool, error) {
	voided := false
	for _, e := range events {
		switch {
		case e.Type == WasVoided && e.Request == call.Request && e.Order == call.Order:
			return true, nil
		case e.Type == WasVoided && e.Request == call.Request:
			return false, ErrMismatch.With("request %s voided the redemption by order %s", call.Request, e.Order)
		case e.Type == WasVoided && e.Order == call.Order:
			voided = true
		}
	}
	if voided {
		return false, ErrRedemptionVoided.With("the redemption by order %s was voided by another request", call.Order)
	}
	return false, nil
}
