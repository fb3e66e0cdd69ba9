package coupon

import (
	"context"
	"errors"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// How a message comes again that could not be handled.
const (
	maxTries   = 8 // for another reason than that something was away
	retryFirst = 500 * time.Millisecond
	retryLast  = time.Minute
)

// Redeliver decides what becomes of a message after its tries-th time ended with
// an error: whether it comes again, and after which pause. Where something was
// away that comes back it does, for ever, as it does a few times after any other
// failure. What is no message does not.
func Redeliver(err error, tries int) (pause time.Duration, again bool) {
	if errors.Is(err, ErrMalformedMessage) || !passing(err) && tries >= maxTries {
		return 0, false
	}
	pause = retryFirst
	for ; tries > 1 && pause < retryLast; tries-- {
		pause *= 2
	}
	return min(pause, retryLast), true
}

// passing reports whether an error says nothing about the message.
func passing(err error) bool {
	for _, e := range []error{
		shard.ErrUnavailable, shard.ErrBusy, shard.ErrMoved, shard.ErrUnknown, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// ReaderStats tell how far a reader of messages is. Counts are of this process.
type ReaderStats struct {
	Reader  string
	Handled int64  // messages
	Retried int64  // failures after which a message comes again
	Dead    int64  // messages that were set aside, as dead letters
	Waiting uint64 // messages that had not been given to any process, when the last one came
}
