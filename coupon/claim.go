package coupon

import (
	"context"
	"errors"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// claimTries is how many coupons a claim tries that others take before it.
const claimTries = 20

// Claim gives a user a coupon of a campaign. The request number makes it happen
// once: its repetition gets the same coupon, even after the campaign has ended.
//
// The coupon is looked for in the slice of the user's own shard, so that claim,
// coupon, wallet and event are one transaction. Only when that slice is empty it
// takes three, on the user's shard (U) and the coupon's (C). If the process dies
//
//	before the first:          nothing happened
//	after U, claim is PENDING: the sweeper does the rest after a minute; the user
//	                           asking again does it at once
//	after C, coupon is bound:  likewise, and finds the coupon bound to this claim
//	after U, claim is done:    everything happened
//
// A pending claim is given another coupon only after its own was seen bound to
// somebody else. That is for ever, so a process that was paused in between can
// never bind a coupon the claim has forgotten.
func (s *Service) Claim(ctx context.Context, campaign int64, call Call) (Result, error) {
	if err := call.check("user_id", "request_no"); err != nil {
		return Result{}, err
	}
	c, err := s.campaigns.get(ctx, campaign)
	if err != nil {
		return Result{}, s.refusal(err)
	}
	// Most users of a campaign with one coupon each have none: the ledger's keys
	// tell of the others, and they are looked for then.
	look := c.PerUserLimit != 1
	for range claimTries {
		result, err := s.claim(ctx, c, call, look)
		if !errors.Is(err, errLost) {
			return result, s.refusal(err)
		}
		look = true
	}
	return Result{}, ErrPoolRefilling
}

// claim makes one attempt. It fails with errLost if another claim was faster, or
// if the user has claimed and look, at the user's claims, is false.
func (s *Service) claim(ctx context.Context, c Campaign, call Call, look bool) (Result, error) {
	home := shard.Text(call.User)
	one := s.pick(ctx, c, home.Bucket().Shard())
	local := one.none == nil && shard.Same(home, one.ID)
	claim := Claim{User: call.User, Campaign: c.ID, Request: call.Request, Coupon: one.ID, Done: local}
	var did claimed
	err := s.store.Write(ctx, home, func(tx Tx) (err error) {
		did, err = claimIn(tx, c, call, claim, one, look)
		return err
	})
	if one.none == nil && (!did.tried || errors.Is(err, shard.ErrDuplicate)) {
		s.pool.put(c.ID, one.Ref)
	}
	switch {
	case errors.Is(err, shard.ErrDuplicate), errors.Is(err, shard.ErrUnknown):
		return Result{}, errLost // a claim of the same user, perhaps this one: look again
	case errors.Is(err, shard.ErrNoMatch):
		return Result{}, errLost // a claim of the same coupon: try another
	case err != nil:
		return Result{}, err
	case did.before == nil && local:
		s.reach(StepClaimLocal, nil)
		return Result{Coupon: did.coupon, At: did.at}, nil
	case did.before == nil:
		claim.Number, claim.At = did.number, did.at
		s.reach(StepClaimPending, nil)
		return s.drive(ctx, c, claim, call)
	}
	return s.claimedBefore(ctx, c, *did.before, call)
}

// A picked is a coupon to try, or why there is none.
type picked struct {
	Ref
	none error
}

// pick takes a coupon of a user's own slice, or, when that is empty, another's.
func (s *Service) pick(ctx context.Context, c Campaign, home shard.Shard) picked {
	ref, err := s.pool.take(ctx, c, home)
	if errors.Is(err, errSliceEmpty) {
		ref, err = s.pool.takeElsewhere(ctx, c, home)
	}
	return picked{ref, err}
}

// claimed is what the transaction on the user's shard came to.
type claimed struct {
	before *Claim // the request was made before
	tried  bool   // the coupon was used, or lost to somebody else
	number int
	coupon Coupon
	at     time.Time
}

// claimIn looks whether the claim was made or may be made, and makes it: all of
// it if the coupon is on this shard.
func claimIn(tx Tx, c Campaign, call Call, claim Claim, one picked, look bool) (claimed, error) {
	did := claimed{at: tx.Now()}
	var made []Claim
	var err error
	if look || one.none != nil || c.open(tx.Now()) != nil { // a repetition is answered in any case
		made, err = tx.Claims(call.User, c.ID)
	}
	if err != nil {
		return did, err
	}
	did.before, did.number, err = allow(made, c, call.Request, tx.Now())
	if err != nil || did.before != nil {
		return did, err
	}
	if one.none != nil {
		return did, one.none
	}
	did.tried = true
	claim.Number, claim.At = did.number, tx.Now()
	if err := tx.PutClaim(claim); err != nil || !claim.Done {
		return did, err
	}
	did.coupon, err = c.issue(one.Ref, call.User, "", tx.Now())
	if err != nil {
		return did, err
	}
	return did, put(tx, decided{next: did.coupon, event: WasClaimed}, call)
}

// allow decides whether a user who made these claims may make another: it
// returns the one of the same request, or the number of the new one.
func allow(made []Claim, c Campaign, request string, now time.Time) (before *Claim, number int, err error) {
	var held []ID
	for _, m := range made {
		switch {
		case m.Request == request && m.Number == 0:
			return nil, 0, ErrMismatch.With("request %s bound coupon %d", request, m.Coupon)
		case m.Request == request:
			return &m, m.Number, nil
		case m.Number > 0:
			held = append(held, m.Coupon)
		}
		number = max(number, m.Number)
	}
	if err := c.open(now); err != nil {
		return nil, 0, err
	}
	if len(held) >= c.PerUserLimit {
		refused := ErrUserLimit.With("the user has %d coupons of the campaign, which is the limit", len(held))
		refused.Held = held
		return nil, 0, refused
	}
	return nil, number + 1, nil
}

// claimedBefore answers a repeated request.
func (s *Service) claimedBefore(ctx context.Context, c Campaign, claim Claim, call Call) (Result, error) {
	if !claim.Done {
		result, err := s.drive(ctx, c, claim, call)
		result.Replayed = err == nil
		return result, err
	}
	got, at, err := s.coupon(ctx, claim.Coupon)
	return Result{Coupon: got, Replayed: true, At: at}, err
}
