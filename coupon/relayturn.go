package coupon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// turn publishes one batch of a shard. more tells that there is something left to
// do at once.
func (r *Relay) turn(ctx context.Context, at shard.Shard, held *heldLease) (more bool, err error) {
	rows, err := r.look(ctx, at)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	select { // so that a queue that is slow still answers each in time
	case r.atOnce <- struct{}{}:
		defer func() { <-r.atOnce }()
	case <-ctx.Done():
		return false, nil
	}
	if mine, err := r.hold(ctx, at, held); err != nil || !mine {
		return false, err
	}
	publishing, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	acked, failed := r.queue.Publish(publishing, at, rows)
	if failed != nil {
		failed = fmt.Errorf("publish %d rows of shard %d: %w", len(rows)-len(acked), at, failed)
	}
	if len(acked) == 0 {
		return false, failed
	}
	err = r.remove(ctx, at, held, acked)
	return len(rows) == relayBatch, errors.Join(failed, err)
}

// look reads the oldest rows and keeps how far behind that is.
func (r *Relay) look(ctx context.Context, at shard.Shard) ([]OutboxRow, error) {
	rows, err := r.outbox.Oldest(ctx, at, relayBatch)
	if err != nil {
		return nil, fmt.Errorf("read the outbox of shard %d: %w", at, err)
	}
	waiting := len(rows)
	if waiting == relayBatch {
		if waiting, err = r.outbox.Waiting(ctx, at, relayCounted); err != nil {
			return nil, fmt.Errorf("count the outbox of shard %d: %w", at, err)
		}
	}
	r.update(at, func(s *RelayStats) {
		s.Waiting, s.Age = waiting, 0
		if len(rows) > 0 {
			s.Age = max(0, time.Since(rows[0].At()))
		}
	})
	return rows, nil
}

// A heldLease is a lease with its end by this machine's monotonic clock.
type heldLease struct {
	RelayLease
	end time.Time // zero: none is held
}

// hold takes or renews the lease where that is due, and reports whether this
// process has it. Its time counts from before the request was sent.
func (r *Relay) hold(ctx context.Context, at shard.Shard, held *heldLease) (bool, error) {
	asked := time.Now()
	if !held.end.IsZero() && asked.Before(held.end) {
		return true, nil
	}
	lease, mine, err := r.outbox.Lease(ctx, at, r.token, relayLease)
	if err != nil {
		return false, fmt.Errorf("lease the relay of shard %d: %w", at, err)
	}
	*held = heldLease{}
	if mine {
		*held = heldLease{lease, asked.Add(relayLease - relayMargin)}
	}
	r.update(at, func(s *RelayStats) { s.Leased = mine })
	return mine, nil
}

// remove removes what was published. That the lease was lost meanwhile is no
// failure: whoever has it publishes the rows again and removes them.
func (r *Relay) remove(ctx context.Context, at shard.Shard, held *heldLease, rows []OutboxRow) error {
	asked := time.Now()
	err := r.outbox.Remove(ctx, at, held.RelayLease, rows, relayLease)
	switch {
	case errors.Is(err, ErrLeaseLost):
		*held = heldLease{}
		r.update(at, func(s *RelayStats) { s.Lost, s.Leased = s.Lost+1, false })
		return nil
	case err != nil:
		*held = heldLease{} // perhaps removed, perhaps not: look again
		return fmt.Errorf("remove %d published rows of shard %d: %w", len(rows), at, err)
	}
	held.end = asked.Add(relayLease - relayMargin)
	r.update(at, func(s *RelayStats) {
		s.Published += int64(len(rows))
		s.Waiting = max(0, s.Waiting-len(rows))
		if s.Waiting == 0 {
			s.Age = 0
		}
	})
	return nil
}
