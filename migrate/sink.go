package migrate

import "context"

// A Mode says what a write may replace.
type Mode string

// The modes.
const (
	Guarded   Mode = "guarded"   // what is absent or has a smaller version
	Absent    Mode = "absent"    // nothing
	Overwrite Mode = "overwrite" // anything: only for rows that are proven never to change
)

// A Sink writes rows. All methods are safe for concurrent use.
type Sink interface {
	// Writer returns a writer for one worker: its retries and its share of
	// the limits are its own.
	Writer() Writer

	// Expect returns what the sink will hold of a row once it is written, or an
	// error that says why it can never be.
	Expect(row Row) (Stored, error)

	// Read returns what the sink holds of rows, by a consistent read, one
	// result per row in their order.
	Read(ctx context.Context, rows []Row) ([]Stored, error)

	// Refresh reads items again that Read or Scan returned, by a consistent
	// read, one result per item in their order.
	Refresh(ctx context.Context, items []Stored) ([]Stored, error)

	// Scan calls visit with everything the sink holds, a part at a time,
	// beginning at position ("" for the start), which it returns for resuming.
	// Parts of different segments come concurrently.
	Scan(ctx context.Context, position string, visit func(items []Stored, position string) error) error

	// Delete removes tombstones and nothing else, and returns how many.
	Delete(ctx context.Context, tombstones []Stored) (int, error)
}

// A Writer writes for one worker. It is not safe for concurrent use.
type Writer interface {
	// Write writes rows and returns what became of each, in their order. It
	// sends nothing new once ctx has ended; a request under way may still
	// land. An error is of the whole call, with results as far as they are
	// known: rows without one may or may not have been written. Throttling and
	// passing failures are retried within; what is left of them matches
	// [ErrTransient].
	Write(ctx context.Context, rows []Row) ([]Result, error)

	// Bury puts a tombstone in the place of an item whose row is gone from the
	// source, with the next version, on condition that the sink still has the
	// item as it is.
	Bury(ctx context.Context, item Stored) (Result, error)

	// BuryAt puts a tombstone of a version in the place that ref names, be
	// there something or not, unless it is a row of that very version (Differs)
	// or anything newer (AlreadyNewer).
	BuryAt(ctx context.Context, ref string, version int64) (Result, error)

	// Replace writes a row for which Write said Differs, on condition that the
	// sink still has that very version.
	Replace(ctx context.Context, row Row) (Result, error)
}

// A Result is what became of a row.
type Result struct {
	Outcome Outcome
	Reason  string // with Refused
}

// An Outcome says what a sink did with a row.
type Outcome uint8

// The outcomes.
const (
	Unknown      Outcome = iota // not known to be written
	Written                     // it is in the sink now
	AlreadyNewer                // the sink has a newer version of it, or a tombstone
	AlreadyOurs                 // the sink has the same version
	Differs                     // the sink has the same version with other content
	Refused                     // it can never be stored; Reason says why
)

// A Stored is an item of the sink.
type Stored struct {
	Found     bool
	Tombstone bool // deleted by the double-writer; verification takes it as absent
	Version   int64
	Key       Key    // of the source, as far as the item tells
	Digest    Digest // of its content in canonical form
	Ref       string // how the sink itself names it
}
