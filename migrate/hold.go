package migrate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// errStalled: there was no progress for so long that a slot, or the Keeper's
// role, is given up.
var errStalled = errors.New("migrate: no progress within stall_timeout")

// newToken returns 128 random bits as text.
func newToken() string { return rand.Text() }

// A lease is a claim or the Keeper's term: it ends unless it is renewed.
type lease struct {
	ttl      time.Duration
	deadline time.Time
	renew    func(context.Context) error // ErrNotHeld, ErrStateLost and errLeft end it
}

// A hold keeps a lease alive while somebody works on it. It is the context of
// that work: it ends when the lease is lost, and its Err looks at the clock, so
// that a process which was paused beyond its deadline sends nothing more even
// before a timer has fired.
type hold struct {
	context.Context
	base     time.Time
	deadline atomic.Int64 // since base
	progress atomic.Int64 // since base
}

// Err returns why work has to end.
func (h *hold) Err() error {
	if err := h.Context.Err(); err != nil {
		return err
	}
	if time.Since(h.base) >= time.Duration(h.deadline.Load()) {
		return context.DeadlineExceeded
	}
	return nil
}

// unheld returns the hold of work that needs no lease.
func unheld(ctx context.Context) *hold {
	h := &hold{Context: ctx, base: time.Now()}
	h.deadline.Store(math.MaxInt64)
	return h
}

// A part of a hold ends earlier than all of it, unless that ends before.
type part struct {
	context.Context
	whole *hold
}

// Err returns why work has to end.
func (p part) Err() error { return cmp.Or(p.whole.Err(), p.Context.Err()) }

// part returns the next d of h; without a d, all of it.
func (h *hold) part(d time.Duration) (context.Context, context.CancelFunc) {
	if d == 0 {
		return h, func() {}
	}
	ctx, cancel := context.WithTimeout(h, d)
	return part{ctx, h}, cancel
}

// prolong sets the deadline for a request that succeeded and was sent at sent.
func (h *hold) prolong(sent time.Time, ttl time.Duration) {
	h.deadline.Store(int64(sent.Add(trust(ttl)).Sub(h.base)))
}

// trust returns how long after it was asked for a lease may be acted upon: its
// time to live less a margin for the difference between two clocks' speeds and
// for what is under way.
func trust(ttl time.Duration) time.Duration { return ttl - ttl/10 }

// advanced notes that there was progress.
func (h *hold) advanced() { h.progress.Store(int64(time.Since(h.base))) }

// holding runs work while c is renewed, as [Migration.keeping] does.
func (m *Migration) holding(ctx context.Context, c Claim, work func(*hold) error) error {
	renew := func(ctx context.Context) error { return m.state.Renew(ctx, c) }
	return m.keeping(ctx, lease{c.TTL, c.Deadline, renew}, work)
}

// keeping runs work while l is renewed. It returns what work returns, or why
// the lease was lost. When it returns, nothing renews l any more.
func (m *Migration) keeping(ctx context.Context, l lease, work func(*hold) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	now := time.Now()
	h := &hold{Context: ctx, base: now}
	h.deadline.Store(int64(l.deadline.Sub(now)))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.renew(ctx, l, h, cancel)
	}()
	err := contain(func() error { return work(h) })
	cause := context.Cause(ctx)
	cancel(nil)
	<-ended
	if cause != nil {
		return cause
	}
	return err
}

// renew prolongs l at a third of its time to live until ctx ends. It ends ctx
// when l is lost, expires, or makes no progress.
func (m *Migration) renew(ctx context.Context, l lease, h *hold, cancel context.CancelCauseFunc) {
	stall := time.Duration(m.plan.State.StallTimeout)
	for {
		left := time.Duration(h.deadline.Load()) - time.Since(h.base)
		if err := sleep(ctx, min(l.ttl/3, left)); err != nil {
			return
		}
		if stall > 0 && time.Since(h.base)-time.Duration(h.progress.Load()) > stall {
			cancel(errStalled)
			return
		}
		sent := time.Now()
		call, done := context.WithTimeout(ctx, max(l.ttl/3, 10*time.Millisecond))
		err := l.renew(call)
		done()
		switch {
		case err == nil:
			h.prolong(sent, l.ttl)
		case errors.Is(err, ErrNotHeld) || errors.Is(err, ErrStateLost) || errors.Is(err, errLeft):
			cancel(err)
			return
		case h.Err() != nil:
			cancel(ErrNotHeld)
			return
		}
	}
}
