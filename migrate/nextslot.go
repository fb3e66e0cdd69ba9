package migrate

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// About how long a worker waits before it looks for a slot again: a little at
// first, because the owner of a slot gives part of it away at its next save,
// then twice as long each time up to the most.
const (
	idleWait     = 20 * time.Millisecond
	idleWaitMost = 500 * time.Millisecond
)

// A walk is a pass over some of the slots.
type walk struct {
	pass  Pass
	slots Span // to walk
	all   Span // of the migration; the lowest of these holds what lies below it, too
}

// open reports whether the walk's lowest slot is open below.
func (k walk) open() bool { return k.slots.Lo == k.all.Lo }

// nextSlot claims the next slot that has rows and returns it to a worker that
// is ready for it. One worker of a pod looks at a time, so that a run of empty
// slots is skipped with one look at the index, not with one by each worker.
func (m *Migration) nextSlot(ctx context.Context, k walk) (Claim, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return Claim{}, context.Cause(ctx)
	}
	for idle := idleWait; ; {
		c, err := m.claim(ctx, k)
		switch {
		case errors.Is(err, ErrNoSlot):
			if err := m.state.Want(ctx, 4*idleWaitMost); err != nil {
				return Claim{}, err
			}
			if err := sleep(ctx, idle/2+rand.N(idle)); err != nil {
				return Claim{}, err
			}
			idle = min(2*idle, idleWaitMost)
			continue
		case err != nil:
			return Claim{}, err
		}
		if c.Slot.Below != nil || c.Progress.Last != nil {
			return c, nil
		}
		found, err := m.skipEmpty(ctx, c, k)
		if err != nil || found {
			return c, err
		}
	}
}

// claim takes a slot that may be read now.
func (m *Migration) claim(ctx context.Context, k walk) (Claim, error) {
	within, err := m.readable(ctx, k.slots)
	if err != nil {
		return Claim{}, err
	}
	sent, ttl := time.Now(), time.Duration(m.plan.State.LockTTL)
	c, err := m.state.Claim(ctx, ClaimRequest{Pass: k.pass, Worker: m.pod, TTL: ttl, Within: within, Oldest: m.plan.Oldest()})
	if err != nil {
		return Claim{}, err
	}
	c.TTL, c.Deadline = ttl, sent.Add(trust(ttl))
	return c, nil
}

// skipEmpty looks for the nearest row in the order of the walk and reports
// whether it lies in c's slot. If not, it finishes the slot with all empty ones
// up to that row. A row whose key does not tell where it sorts may lie in c's
// slot: that is read, and nothing is skipped.
//
// If the process dies before Finish, the slot is claimed again when the claim
// has expired.
func (m *Migration) skipEmpty(ctx context.Context, c Claim, k walk) (found bool, err error) {
	i, slots := c.Slot.Index, k.slots
	rest, empty := m.rest(i, k), Span{}
	var key Key
	err = m.try(ctx, func() (err error) {
		key, found, err = m.source.Nearest(ctx, rest)
		return err
	})
	if err != nil {
		return false, errors.Join(err, m.letGo(ctx, c))
	}
	at := i
	if found {
		var ok bool
		if at, ok = m.axis.place(key); !ok {
			return true, nil
		}
		at = min(max(at, slots.Lo), slots.Hi-1) // the lowest slot may be open below
	}
	switch {
	case found && at == i:
		return true, nil
	case m.plan.Oldest():
		empty = Span{i, at}
		if !found {
			empty.Hi = slots.Hi
		}
	default:
		empty = Span{at + 1, i + 1}
		if !found {
			empty.Lo = slots.Lo
		}
	}
	return false, m.try(ctx, func() error { return m.state.Finish(ctx, c, Progress{}, empty) })
}

// rest returns the keys of slot i and of all that come after it in the order
// of the walk.
func (m *Migration) rest(i int64, k walk) Range {
	if m.plan.Oldest() {
		return Range{Lo: m.axis.Range(Slot{Index: i}, k.all).Lo, Hi: m.axis.Bound(k.slots.Hi)}
	}
	r := Range{Hi: m.axis.Bound(i + 1)}
	if !k.open() {
		r.Lo = m.axis.Bound(k.slots.Lo)
	}
	return r
}

// letGo releases a claim even though ctx may have ended.
func (m *Migration) letGo(ctx context.Context, c Claim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := m.state.Release(ctx, c); err != nil && !errors.Is(err, ErrNotHeld) {
		return err
	}
	return nil
}
