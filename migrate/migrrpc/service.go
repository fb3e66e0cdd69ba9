package migrrpc

import (
	"context"

	"github.com/tallystick/tallystick/migrate"
)

// A Service looks at and steers one migration. It is safe for concurrent use.
type Service interface {
	// Status returns how far it has come.
	Status(ctx context.Context) (migrate.Report, error)
	// Plan looks at everything as before the first write, and writes nothing.
	Plan(ctx context.Context) (Outlook, error)
	// Start lets it begin or go on and returns the status after it. Before the
	// first start it fails with the first refusal that Plan finds.
	Start(ctx context.Context) (migrate.Status, error)
	// Stop lets all pods stop and returns the status after it.
	Stop(ctx context.Context) (migrate.Status, error)
	// Verify begins a verification, or tells about the one whose ID is given.
	Verify(ctx context.Context, req VerifyRequest) (Verification, error)
	// Ledger returns up to limit lines from number from on.
	Ledger(ctx context.Context, from int64, limit int) ([]migrate.LedgerLine, error)
	// Replay tries the rows in quarantine again. It returns how many are
	// settled and how many are left.
	Replay(ctx context.Context) (settled, left int, err error)
}

// An Outlook is what is known of a migration before it begins.
type Outlook struct {
	Findings   []migrate.Finding `json:"findings"`
	Slots      int64             `json:"slots"`
	Rows       int64             `json:"rows"`        // estimate
	Bytes      int64             `json:"bytes"`       // estimate
	WriteUnits int64             `json:"write_units"` // estimate, of a sink that counts kilobytes begun
	Seconds    []int64           `json:"time_s"`      // estimate for one pod, at the least and at the most; empty if nothing is to be done
}

// A VerifyRequest begins a verification, or asks for one.
type VerifyRequest struct {
	ID     string // of the one to ask for; "": begin one
	Mode   string // counts, samples or full
	Only   string // name of the only slot to verify; "": everything
	Repair bool
}

// A Verification is one that was begun.
type Verification struct {
	ID       string
	Done     bool
	Compared int64           // so far
	Verdict  migrate.Verdict // once it is done and Err is nil
	Err      error           // why it failed
}
