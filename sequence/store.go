package sequence

import (
	"context"
	"crypto/rand"
)

// A Store is the source of truth: one [Record] per name. Every write is
// atomic, durable once it returns nil, and carries a fresh nonce. Stores
// resolve nothing themselves and retry no write: [Service] is the one layer
// that does. Where somebody on the way replays a write, its own record comes
// back with [ErrConflict]. All methods are safe for concurrent use, by many processes too.
//
// Errors: [ErrUnavailable] when nothing was written because the store cannot
// be reached or throttles; [ErrUnknownOutcome] when a write was sent and no
// answer came; anything else as each method says. Package seqtest has the
// suite that every implementation passes.
type Store interface {
	// Create writes each record whose name the store does not hold. The
	// result has one error per record: nil, [ErrExists] (a tombstone exists
	// too), or why it is not known to be written.
	Create(ctx context.Context, records []Record) []error

	// Load returns the record of name by a consistent read, tombstones
	// included, or [ErrNotFound].
	Load(ctx context.Context, name string) (Record, error)

	// Advance moves a counter and returns the record after the move. Where a
	// does not apply, it returns [ErrConflict] and the record as it is; and
	// [ErrNotFound] where there is none.
	Advance(ctx context.Context, a Advance) (Record, error)

	// Swap replaces the record of next's name if its nonce still is nonce,
	// and returns next. Otherwise it returns [ErrConflict] and the record as
	// it is, or [ErrNotFound].
	Swap(ctx context.Context, nonce string, next Record) (Record, error)

	// List returns up to limit records, tombstones included, whose names
	// begin with prefix and that follow the name after in the store's own
	// fixed order. Fewer than limit, none even, does not mean the end: more
	// tells, and last is where to go on.
	List(ctx context.Context, prefix, after string, limit int) (records []Record, last string, more bool, err error)

	// Generation returns a number that [Store.Bump] raises, and fails with
	// [ErrPrecondition] when the store is not the one that was opened.
	Generation(ctx context.Context) (uint64, error)

	// Bump raises the generation, which makes every server look at its
	// cached sequences again.
	Bump(ctx context.Context) error
}

// NewNonce returns a nonce no other write has: 128 random bits.
func NewNonce() string { return rand.Text() }
