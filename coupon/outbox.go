package coupon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// An Outbox has the messages of each shard that are still to be published: each
// was written in the transaction of its event. Rows become visible out of order,
// because a transaction that read the clock first may commit last, so nobody may
// remember a row and go on behind it: rows are read from the first one there is, and
// removed. Package coupontest has the suite that an implementation passes. It is
// safe for concurrent use.
type Outbox interface {
	// Oldest returns up to n committed rows of a shard, those of the oldest events,
	// by rising time, coupon and version. It writes nothing.
	Oldest(ctx context.Context, at shard.Shard, n int) ([]OutboxRow, error)
	// Waiting counts the rows of a shard, but looks at no more than max of them.
	Waiting(ctx context.Context, at shard.Shard, max int) (int, error)
	// Lease gives the relay of a shard to the holder of a token until the
	// database's clock is ttl on, as [RelayLease.Take] decides, and reports
	// whether. A holder that asks again renews.
	Lease(ctx context.Context, at shard.Shard, token string, ttl time.Duration) (RelayLease, bool, error)
	// Remove removes rows of a shard and renews the lease, in one transaction.
	// Rows that are gone are passed over. With a lease that is no longer the
	// shard's it removes nothing: [ErrLeaseLost].
	Remove(ctx context.Context, at shard.Shard, lease RelayLease, rows []OutboxRow, ttl time.Duration) error
}

// An OutboxRow is a message as it waits to be published.
type OutboxRow struct {
	Coupon  ID // of the first coupon
	Version uint32
	Payload []byte // a [Message], encoded
}

// Name names the message for ever: it is published under this name, so that a
// queue recognises one that it has.
func (r OutboxRow) Name() string { return fmt.Sprintf("%d:%d", r.Coupon, r.Version) }

// At returns when the event happened, or no time for what is no message.
func (r OutboxRow) At() time.Time {
	m, err := DecodeMessage(r.Payload)
	if err != nil {
		return time.Time{}
	}
	return m.Event.At
}

// ErrLeaseLost tells that another process has the lease.
var ErrLeaseLost = errors.New("coupon: another process has the lease")

// A RelayLease says who relays a shard. The epoch grows with each new holder.
type RelayLease struct {
	Token string // of the holder
	Epoch uint64 // 0: nobody held it yet
	Until time.Time
}

// Take returns the lease after token asked for it, at now, and whether it was
// given: to whoever has it, and to others once it is over. One process relays a
// shard at a time, but for a holder that was paused: what two do is harmless.
func (l RelayLease) Take(token string, now time.Time, ttl time.Duration) (RelayLease, bool) {
	if l.Epoch > 0 && l.Token != token {
		if now.Before(l.Until) {
			return l, false
		}
	}
	next := RelayLease{Token: token, Epoch: l.Epoch, Until: now.Add(ttl)}
	if l.Token != token || l.Epoch == 0 {
		next.Epoch++
	}
	return next, true
}

// A Publisher hands messages to a queue. It is safe for concurrent use.
type Publisher interface {
	// Publish returns the rows that the queue has on disk, in any order, and what
	// happened to the others if that is not all. A row that comes again is kept
	// once, or twice: readers know by the version.
	Publish(ctx context.Context, at shard.Shard, rows []OutboxRow) ([]OutboxRow, error)
}
