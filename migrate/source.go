package migrate

import (
	"context"
	"time"
)

// A Source pages rows in the order of their key. All methods are safe for
// concurrent use. Errors that may pass by themselves match [ErrTransient].
type Source interface {
	// Page returns up to limit rows of r in the order of the plan (newest
	// first: falling keys), beginning beyond after (nil: at the end of r), and
	// no more than about maxBytes of them, but at least one if there is one.
	// Fewer rows than limit and fewer bytes than maxBytes mean the end.
	Page(ctx context.Context, r Range, after Key, limit, maxBytes int) (Page, error)

	// Nearest returns the first key of r in the order of the plan, by one
	// look at the index, and false if r is empty.
	Nearest(ctx context.Context, r Range) (Key, bool, error)

	// Get returns the rows of keys that exist, in any order. With lock they
	// are read under a row lock, after every transaction that holds one.
	Get(ctx context.Context, keys []Key, lock bool) ([]Row, error)

	// Split returns a key that lies about in the middle of what is left of r
	// beyond after, by index probes, and false if that is too little to share.
	Split(ctx context.Context, r Range, after Key) (Key, bool, error)

	// Now returns the database's clock.
	Now(ctx context.Context) (time.Time, error)

	// Extent returns the least and the greatest key and an estimate of the
	// rows. Keys are nil when the table is empty.
	Extent(ctx context.Context) (Extent, error)
}

// A Page is what one read brought.
type Page struct {
	Rows []Row
	End  bool // nothing of the range is left
}

// An Extent is what a source knows of a table without reading it.
type Extent struct {
	Min, Max Key
	Rows     int64 // estimate
	RowBytes int64 // estimate of a row's average data
}

// A Settler is a source that can tell when every transaction that was open at
// some moment has ended, so that rows committed late with old keys are seen.
type Settler interface {
	// Settled returns a token of now.
	Settled(ctx context.Context) (token string, err error)
	// Await returns when every transaction that was open at the token has
	// ended.
	Await(ctx context.Context, token string) error
}

// An Outbox is a source with the table into which the double-writer puts the
// keys it is about to write to the sink.
type Outbox interface {
	// Newest returns the greatest ID of the notes that can be seen, 0 if there
	// are none. none tells that there is no such table.
	Newest(ctx context.Context) (id int64, none bool, err error)
	// Pending returns up to limit keys that a double-writer left, the least ID
	// first. none tells that there is no such table.
	Pending(ctx context.Context, limit int) (left []Left, none bool, err error)
	// Clear removes what was dealt with.
	Clear(ctx context.Context, left []Left) error
}

// A Left is a key that a double-writer noted and did not remove.
type Left struct {
	Key     Key    // with a Flaw, its text as the only part
	ID      int64  // of the note, from a sequence that grows
	Ref     string // how the sink names the item; "": the note does not say
	Version int64  // of the change, a deletion too; 0: the note does not say
	Flaw    string // why the key cannot be read; "": it can
}

// A Gauge tells how hard a source is pressed.
type Gauge interface {
	// Lag returns how far the replica that is furthest behind has to go; 0
	// without replicas.
	Lag(ctx context.Context) (time.Duration, error)
}
