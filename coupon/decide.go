package coupon

import "time"

// At returns the status at an instant: a lapsed reservation counts as issued,
// and what is issued counts as expired from its end on. A reservation that is
// held outlives the end.
func (c Coupon) At(now time.Time) Status {
	return StatusAt(c.Status, c.ReservedUntil, c.Valid.Until, now)
}

// held reports whether an order holds the coupon.
func (c Coupon) held(now time.Time) bool {
	return c.Status == Reserved && now.Before(c.ReservedUntil)
}

// decided is what a decision comes to. With replayed, it was done before and
// nothing is to be written.
type decided struct {
	next     Coupon
	event    EventType
	replayed bool
}

// to is that c changes into next.
func (c Coupon) to(next Coupon, event EventType, now time.Time) decided {
	next.Version, next.Updated = c.Version+1, now
	return decided{next: next, event: event}
}

func (c Coupon) replay() decided { return decided{next: c, replayed: true} }

// admit refuses, with the same words whatever the reason, whoever must not learn
// about the coupon: nobody's is nobody's business, another's is the owner's, and
// a used bearer coupon that of the order that used it.
func (c Coupon) admit(user, order string) error {
	switch {
	case c.Status == Available, c.Status == Voided:
		return ErrUnavailable
	case c.User != "" && c.User != user:
		return ErrUnavailable
	case c.User == "" && c.Status == Redeemed && c.RedeemedOrder != order && !c.OwnedBy(user):
		return ErrUnavailable
	}
	return nil
}

// within refuses outside the window.
func (c Coupon) within(now time.Time) error {
	if !c.Valid.Started(now) {
		return ErrNotStarted.With("the coupon is valid from %s on", c.Valid.From.Format(time.RFC3339))
	}
	if c.Valid.Ended(now) {
		return ErrExpired.With("the coupon was valid until %s", c.Valid.Until.Format(time.RFC3339))
	}
	return nil
}

// redeem decides what redeeming by an order comes to. A hold of that order that
// has not lapsed is good even beyond the coupon's end.
func (c Coupon) redeem(now time.Time, user, order string) (decided, error) {
	if err := c.admit(user, order); err != nil {
		return decided{}, err
	}
	mine := c.held(now) && c.ReservedOrder == order
	switch {
	case c.Status == Redeemed && c.RedeemedOrder != order:
		return decided{}, ErrAlreadyRedeemed
	case c.Status == Redeemed && c.User == "" && c.RedeemedUser != user:
		return decided{}, ErrMismatch.With("order %s redeemed the coupon for another user", order)
	case c.Status == Redeemed:
		return c.replay(), nil
	case c.held(now) && !mine:
		return decided{}, ErrReserved
	}
	if !mine {
		if err := c.within(now); err != nil {
			return decided{}, err
		}
	}
	next := c
	next.Status, next.RedeemedOrder, next.RedeemedAt = Redeemed, order, now
	next.ReservedOrder, next.ReservedUntil = "", time.Time{}
	if c.User == "" {
		next.RedeemedUser = user
	}
	return c.to(next, WasRedeemed, now), nil
}

// reserve decides what holding the coupon for an order comes to. The hold that
// the order has already is not prolonged.
func (c Coupon) reserve(now time.Time, user, order string, ttl time.Duration) (decided, error) {
	if err := c.admit(user, order); err != nil {
		return decided{}, err
	}
	switch {
	case c.Status == Redeemed:
		return decided{}, ErrAlreadyRedeemed
	case c.held(now) && c.ReservedOrder == order:
		return c.replay(), nil
	case c.held(now):
		return decided{}, ErrReserved
	}
	if err := c.within(now); err != nil {
		return decided{}, err
	}
	next := c
	next.Status, next.ReservedOrder, next.ReservedUntil = Reserved, order, now.Add(ttl)
	return c.to(next, WasReserved, now), nil
}

// release decides what giving up an order's hold comes to. A coupon remembers
// who held it last, so that a repetition is told from a mistake.
func (c Coupon) release(now time.Time, user, order string) (decided, error) {
	if err := c.admit(user, order); err != nil {
		return decided{}, err
	}
	switch {
	case c.Status == Redeemed:
		return decided{}, ErrAlreadyRedeemed
	case c.held(now) && c.ReservedOrder != order:
		return decided{}, ErrReserved
	case c.ReservedOrder != order:
		return decided{}, ErrNotReserved
	case c.Status == Issued:
		return c.replay(), nil
	}
	next := c
	next.Status, next.ReservedUntil = Issued, time.Time{}
	return c.to(next, WasReleased, now), nil
}

// bind decides what giving a bearer coupon to a user comes to.
func (c Coupon) bind(now time.Time, user string) (decided, error) {
	if err := c.admit(user, ""); err != nil {
		return decided{}, err
	}
	switch {
	case c.User == user:
		return c.replay(), nil
	case c.Status == Redeemed:
		return decided{}, ErrAlreadyRedeemed
	case c.held(now):
		return decided{}, ErrReserved
	case c.Valid.Ended(now):
		return decided{}, ErrExpired
	}
	next := c
	next.User = user
	return c.to(next, WasBound, now), nil
}

// void decides what taking a redemption back comes to. The platform asks: it is
// told precisely.
func (c Coupon) void(now time.Time, order string) (decided, error) {
	if c.Status != Redeemed || c.RedeemedOrder != order {
		return decided{}, ErrWrongOrder
	}
	next := c
	next.Status = Issued
	next.RedeemedOrder, next.RedeemedUser, next.RedeemedAt = "", "", time.Time{}
	return c.to(next, WasVoided, now), nil
}
