package sequence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Bounds of the one layer that retries store writes.
const (
	maxAttempts  = 64                     // of one allocation or change; contention beyond it is reported
	attemptDelay = 2 * time.Millisecond   // before the third attempt, doubled for each further one
	maxDelay     = 100 * time.Millisecond // between two attempts
)

// A want is what an allocation is to get.
type want struct {
	size  func(Record) int64 // values to take, at least 1, given the newest record
	floor *Floor             // only values beyond it; nil: any
}

// allocate takes one block from the store and returns it with the record after
// it. seen is the newest record known, stale or not. The error leaves the
// store as it was, but for values counted as burned by an unknown outcome.
//
// If the process dies before the write, nothing happened; after it, the block
// is burned: nobody else can get its values, because the counter only moves
// on. A lost reply looks like either; the nonce in the item tells, and where a
// later write has replaced it, the block is given up and counted.
func (s *Service) allocate(ctx context.Context, seen Record, w want) (Block, Record, error) {
	fresh := false // seen was just read
	for attempt := range maxAttempts {
		if err := pause(ctx, attempt); err != nil {
			return Block{}, seen, err
		}
		plan, err := planAllocation(seen, fresh, w)
		if errors.Is(err, errStale) {
			seen, err = s.store.Load(ctx, seen.Definition.Name)
			fresh = err == nil
			if fresh {
				continue
			}
		}
		if err != nil {
			return Block{}, seen, err
		}
		after, err := plan.write(ctx, s.store)
		if errors.Is(err, ErrUnknownOutcome) {
			after, err = s.resolve(ctx, plan, err)
		}
		switch {
		case err == nil:
			return plan.block(after), after, nil
		case errors.Is(err, ErrConflict):
			seen, fresh = after, true
		default:
			return Block{}, seen, err
		}
	}
	return Block{}, seen, &Error{Code: CodeUnavailable, Field: "name", RetryAfter: maxDelay,
		Message: fmt.Sprintf("sequence %q is taken by too many servers at once", seen.Definition.Name)}
}

// resolve finds out what became of a write whose reply was lost. It returns
// the record after the write if that was done and is the newest, ErrConflict
// with the record as it is if that cannot be known: the block is burned then.
func (s *Service) resolve(ctx context.Context, plan allocation, cause error) (Record, error) {
	now, err := s.store.Load(ctx, plan.name())
	if wrote(now, err, plan.nonce) {
		return now, nil
	}
	s.burn(BurnedUnknown, plan.size)
	if err != nil {
		return Record{}, &Error{Code: CodeUnavailable, Message: "the store does not answer", Err: cause}
	}
	return now, ErrConflict
}

// errStale: the plan depends on where the counter is now.
var errStale = errors.New("sequence: record may be stale")

// An allocation is one planned write: an Advance, or a Swap where only that
// can do it.
type allocation struct {
	nonce   string
	size    int64 // values it takes
	advance *Advance
	from    string // nonce the Swap is conditional on
	next    Record
	taken   Block
}

// planAllocation decides on the write that takes a block. fresh tells that r
// is known to be the newest; a refusal is certain only then, and otherwise
// errStale.
func planAllocation(r Record, fresh bool, w want) (allocation, error) {
	if err := refusal(r, w.floor); err != nil {
		if !fresh {
			return allocation{}, errStale
		}
		return allocation{}, err
	}
	floor := w.floor
	if floor != nil && floor.Epoch != r.Epoch {
		floor = nil
	}
	nonce, n := NewNonce(), w.size(r)
	if a, ok := r.advance(n, lastOf(floor), nonce); ok {
		return allocation{nonce: nonce, size: n, advance: &a}, nil
	}
	if !fresh {
		return allocation{}, errStale
	}
	block, next, err := r.Take(n, nonce)
	return allocation{nonce: nonce, size: block.Count, from: r.Nonce, next: next, taken: block}, err
}

// refusal returns why no block can be taken from r, if it is as r says.
func refusal(r Record, floor *Floor) error {
	d := r.Definition
	switch {
	case r.State != StateOpen:
		return notFound(d.Name)
	case floor != nil && floor.Epoch == r.Epoch && r.ahead(floor.Last):
		return invalid("floor", "send the last value this client was granted, or no floor",
			"%d of sequence %q was not handed out yet", floor.Last, d.Name)
	case r.Exhausted && !d.Cycle:
		return exhausted(d)
	}
	return nil
}

func lastOf(f *Floor) *int64 {
	if f == nil {
		return nil
	}
	return &f.Last
}

func (p allocation) write(ctx context.Context, store Store) (Record, error) {
	after, err := Record{}, error(nil)
	if p.advance != nil {
		after, err = store.Advance(ctx, *p.advance)
	} else {
		after, err = store.Swap(ctx, p.from, p.next)
	}
	if wrote(after, err, p.nonce) {
		return after, nil
	}
	return after, err
}

// wrote reports whether now, which a write with nonce or a read after it
// brought, is what that write left. Stores resolve nothing: where an earlier
// try of the very same write was replayed on the way, it is ErrConflict.
func wrote(now Record, err error, nonce string) bool {
	return now.Nonce == nonce && (err == nil || errors.Is(err, ErrConflict))
}

func (p allocation) name() string {
	if p.advance != nil {
		return p.advance.Name
	}
	return p.next.Definition.Name
}

func (p allocation) block(after Record) Block {
	if p.advance != nil {
		return p.advance.block(after)
	}
	return p.taken
}

// pause waits before an attempt: not at all before the first two, since a
// conflict tells the newest record at once; then longer each time, at random.
func pause(ctx context.Context, attempt int) error {
	if attempt < 2 {
		return context.Cause(ctx)
	}
	delay := min(maxDelay, attemptDelay<<min(attempt-2, 10))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(rand.N(delay)):
		return nil
	}
}
