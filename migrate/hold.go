package migrate

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"time"
)

// errStalled: a slot made no progress for so long that it is given up.
var errStalled = errors.New("migrate: no progress within stall_timeout")

// newToken returns 128 random bits as text.
func newToken() string { return rand.Text() }

// A hold keeps a claim alive while somebody works on it. It is the context of
// that work: it ends when the claim is lost, and its Err looks at the clock, so
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

// prolong sets the deadline for a request that succeeded and was sent at sent.
func (h *hold) prolong(sent time.Time, ttl time.Duration) {
	h.deadline.Store(int64(sent.Add(trust(ttl)).Sub(h.base)))
}

// trust returns how long after it was asked for a claim may be acted upon: its
// time to live less a margin for the difference between two clocks' speeds and
// for what is under way.
func trust(ttl time.Duration) time.Duration { return ttl - ttl/10 }

// advanced notes that there was progress.
func (h *hold) advanced() { h.progress.Store(int64(time.Since(h.base))) }

// holding runs work while c is renewed. It returns what work returns, or why
// the claim was lost. When it returns, nothing renews c any more.
func (m *Migration) holding(ctx context.Context, c Claim, work func(*hold) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	now := time.Now()
	h := &hold{Context: ctx, base: now}
	h.deadline.Store(int64(c.Deadline.Sub(now)))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.renew(ctx, c, h, cancel)
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

// renew prolongs c at a third of its time to live until ctx ends. It ends ctx
// when c is lost, expires, or makes no progress.
func (m *Migration) renew(ctx context.Context, c Claim, h *hold, cancel context.CancelCauseFunc) {
	stall := time.Duration(m.plan.State.StallTimeout)
	for {
		left := time.Duration(h.deadline.Load()) - time.Since(h.base)
		if err := sleep(ctx, min(c.TTL/3, left)); err != nil {
			return
		}
		if stall > 0 && time.Since(h.base)-time.Duration(h.progress.Load()) > stall {
			cancel(errStalled)
			return
		}
		sent := time.Now()
		call, done := context.WithTimeout(ctx, max(c.TTL/3, 10*time.Millisecond))
		err := m.state.Renew(call, c)
		done()
		switch {
		case err == nil:
			h.prolong(sent, c.TTL)
		case errors.Is(err, ErrNotHeld) || errors.Is(err, ErrStateLost):
			cancel(err)
			return
		case h.Err() != nil:
			cancel(ErrNotHeld)
			return
		}
	}
}
