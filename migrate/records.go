package migrate

import (
	"context"
	"time"
)

// Records are what stays: the ledger, the quarantine and the verdict.
type Records interface {
	// Quarantine adds rows that could not be stored, as the owner of c. A key
	// that is there already is replaced.
	Quarantine(ctx context.Context, c Claim, rows []Quarantined) error
	// SetAside adds rows that no slot is read for, as the Keeper of term. Those
	// that are not there yet are counted.
	SetAside(ctx context.Context, term Term, rows []Quarantined) error
	// Quarantined returns up to limit rows in quarantine after the key after,
	// all if it is "". Fewer than limit mean the end: the key of the first row
	// may be "" too.
	Quarantined(ctx context.Context, after string, limit int) ([]Quarantined, error)
	// Wrote records that somebody who holds no claim writes to the sink now, by
	// the state's clock.
	Wrote(ctx context.Context) error
	// Tally returns what there is to know of what no slot tells.
	Tally(ctx context.Context) (Tally, error)
	// Clear takes rows out of quarantine.
	Clear(ctx context.Context, keys []Key) error
	// Ledger returns up to limit lines from number from on.
	Ledger(ctx context.Context, from int64, limit int) ([]LedgerLine, error)
	// SetVerdict records the outcome of a verification and removes the mark, if
	// it is verifier's. A bad verdict is replaced by a bad one, and by a clean
	// one that is full and compared nothing before it.
	SetVerdict(ctx context.Context, verifier string, v Verdict) error
	// Verdict returns the last one, and false if there is none.
	Verdict(ctx context.Context) (Verdict, bool, error)
}

// A Quarantined is a row that cannot be stored.
type Quarantined struct {
	Key    Key       `json:"key"`
	Reason string    `json:"reason"`
	Slot   string    `json:"slot"`
	At     time.Time `json:"at"`
}

// A Tally is what happened beside the slots.
type Tally struct {
	Wrote   time.Time // the last call of Wrote; zero: none
	Aside   int64     // rows in quarantine
	Cleared int64     // rows that were taken out of it
}

// A LedgerLine records a finished slot.
type LedgerLine struct {
	Number int64     `json:"number"`
	Pass   Pass      `json:"pass"`
	Slot   string    `json:"slot"`
	Empty  int64     `json:"empty,omitempty"` // slots beside it that were found empty
	Counts Counts    `json:"counts"`
	Digest string    `json:"digest"`
	Worker string    `json:"worker"`
	Epoch  uint64    `json:"epoch"`
	Plan   string    `json:"plan"`
	At     time.Time `json:"at"`
}

// A Verdict is the outcome of a verification. A bad one stays until a full
// verification comes out clean that was begun later. Times are the state's.
type Verdict struct {
	Clean       bool       `json:"clean"`
	Mode        string     `json:"mode"`
	Compared    int64      `json:"compared"`
	Resumed     int64      `json:"resumed,omitempty"`     // of these, by one before it that did not end
	SourceRows  int64      `json:"source_rows,omitempty"` // of counts
	SinkRows    int64      `json:"sink_rows,omitempty"`   // of counts, without tombstones
	Noted       int64      `json:"noted,omitempty"`       // rows with a note, which counts compares and counts on neither side
	Missing     []Key      `json:"missing"`
	Different   []Key      `json:"different"`
	Extra       []Key      `json:"extra"`
	Unsettled   []Key      `json:"unsettled"`
	Unmended    []Unmended `json:"unmended,omitempty"` // of those, by a repair
	Totals      Totals     `json:"totals"`
	Quarantined int64      `json:"quarantined"`
	Plan        string     `json:"plan"`
	Since       time.Time  `json:"since"` // the first row was compared; what was compared is of then or later
	At          time.Time  `json:"at"`
}

// Totals are how many there are of what a verdict lists the first 1,000 of each.
type Totals struct {
	Missing   int64 `json:"missing"`
	Different int64 `json:"different"`
	Extra     int64 `json:"extra"`
	Unsettled int64 `json:"unsettled"`
	Unmended  int64 `json:"unmended,omitempty"`
}
