package migrate

import (
	"context"
	"time"
)

// A Status is what a migration is doing, for all pods.
type Status string

// The statuses. Pods move TO_START and TO_STOP on only through the Keeper.
const (
	NotStarted Status = "NOT_STARTED"
	ToStart    Status = "TO_START"
	InProgress Status = "IN_PROGRESS"
	ToStop     Status = "TO_STOP"
	Stopped    Status = "STOPPED"
	Finished   Status = "FINISHED"
)

// A Pass is one walk over slots.
type Pass string

// The passes of a run, in their order.
const (
	Copying  Pass = "copying"
	Sweeping Pass = "sweeping" // the newest slots once more, for rows that were committed late
)

// A State keeps the progress and the locks of a migration for all its pods.
// Every write of a claim's owner is refused with [ErrNotHeld] unless the claim
// is still its, and every call with [ErrStateLost] once the state was emptied
// or set back. All methods are safe for concurrent use. Package migtest has
// the suite that every implementation passes.
type State interface {
	Board
	Switch
	Records
	Marks

	// Open registers a pod. The first one writes the plan; a pod with another
	// plan is refused with [ErrOtherPlan].
	Open(ctx context.Context, plan PlanRecord) error
	// Reset removes everything, or fails with [ErrWrongStatus] while claims
	// are live.
	Reset(ctx context.Context) error
	// Close ends the connection.
	Close() error
}

// A PlanRecord is the plan as the state keeps it.
type PlanRecord struct {
	Name     string
	Hash     string
	Text     string // without secrets
	Values   string // of the text and the environment, in which pods must agree; a line each
	Slots    Span   // of all slots
	Sweep    Span   // of those to walk twice
	Rows     int64  // estimate, for the time left
	Surveyed bool   // the Keeper has written the three before
}

// A Survey is what there is to migrate.
type Survey struct {
	Slots Span  // of all slots
	Sweep Span  // of those to walk twice
	Rows  int64 // estimate
}

// A Span is a half-open interval of slot indexes [Lo, Hi).
type Span struct{ Lo, Hi int64 }

// A Board hands out slots.
type Board interface {
	// Claim takes the first slot, in the order of the plan, that is neither
	// finished nor held, and none beyond the span within; parts of split slots
	// come first. [ErrNoSlot] tells that there is none now.
	Claim(ctx context.Context, req ClaimRequest) (Claim, error)
	// Renew prolongs a claim by its time to live.
	Renew(ctx context.Context, c Claim) error
	// Save records progress, which only advances, and prolongs the claim. It
	// reports whether an idle worker wants part of the slot.
	Save(ctx context.Context, c Claim, p Progress) (wanted bool, err error)
	// Split saves progress and adds rest, the part of the slot that c gives up,
	// as a slot of its own whose progress is begin. Where rest exists already it
	// only saves: the call is being repeated.
	Split(ctx context.Context, c Claim, p Progress, rest Slot, begin Progress) error
	// Finish records the slot as finished and ends the claim. With an empty
	// span beside it, slots that were found empty are finished with it.
	Finish(ctx context.Context, c Claim, p Progress, empty Span) error
	// Release ends a claim; the slot is free from where it was saved.
	Release(ctx context.Context, c Claim) error
	// Want tells the owners of slots that a worker is idle, for a while.
	Want(ctx context.Context, d time.Duration) error
}

// A ClaimRequest asks for a slot.
type ClaimRequest struct {
	Pass   Pass
	Worker string // who asks, for people
	TTL    time.Duration
	Within Span // indexes that may be claimed now
	Oldest bool // oldest first
}

// A Claim is a slot that is held: whoever has another token or epoch does not
// hold it. Its deadline counts from before the request was sent, on the local
// monotonic clock, less a margin.
type Claim struct {
	Pass     Pass
	Slot     Slot
	Token    string
	Epoch    uint64
	TTL      time.Duration
	Deadline time.Time
	Progress Progress // as it was saved last
}

// Progress is how far a slot has come. It is cumulative.
type Progress struct {
	Last   Key // the last key whose row, and every row before it in the slot, is acknowledged; nil: none
	Lo     Key // the slot was split: it ends here instead of at its own bound; nil: it was not
	Counts Counts
	Digest Digest // of the rows read, as they are to be in the sink
}

// Counts are what became of rows.
type Counts struct {
	Read         int64 `json:"read"`
	Bytes        int64 `json:"bytes"` // of data read, see Row.Data
	Written      int64 `json:"written"`
	AlreadyNewer int64 `json:"already_newer"`
	AlreadyOurs  int64 `json:"already_ours"`
	Quarantined  int64 `json:"quarantined"`
}

// Plus returns the sum.
func (c Counts) Plus(d Counts) Counts {
	return Counts{c.Read + d.Read, c.Bytes + d.Bytes, c.Written + d.Written,
		c.AlreadyNewer + d.AlreadyNewer, c.AlreadyOurs + d.AlreadyOurs, c.Quarantined + d.Quarantined}
}

// A Switch holds the status, which only moves by compare-and-set.
type Switch interface {
	// View returns everything there is to know at a glance.
	View(ctx context.Context) (View, error)
	// Move changes the status if it is from in the given generation; otherwise
	// it fails with [ErrWrongStatus]. Each move to TO_START begins a new
	// generation.
	Move(ctx context.Context, generation uint64, from, to Status) error
	// Lead takes or prolongs the Keeper's lock. It fails with [ErrNotHeld]
	// while another pod has it.
	Lead(ctx context.Context, keeper string, ttl time.Duration) (Term, error)
	// Survey writes what there is to migrate, as the Keeper of term. It fails
	// with [ErrWrongStatus] unless the status is TO_START; what was written once
	// stays.
	Survey(ctx context.Context, term Term, s Survey) error
	// Advance moves the phase on, as the Keeper of term.
	Advance(ctx context.Context, term Term, to Phase) error
	// Resign gives the Keeper's lock up.
	Resign(ctx context.Context, term Term) error
}

// A Term is the time a pod is Keeper.
type Term struct {
	Keeper string
	Epoch  uint64
}

// A Phase is where a run is on its way to FINISHED.
type Phase string

// The phases.
const (
	PhaseCopy   Phase = "copy"
	PhaseSweep  Phase = "sweep"
	PhaseOutbox Phase = "outbox"
	PhaseDone   Phase = "done"
)

// A View is a migration at a glance.
type View struct {
	Plan       PlanRecord // as the first pod wrote it
	Status     Status
	Generation uint64
	Phase      Phase
	Finished   map[Pass][]Span // coalesced, rising
	Live       []Held
	Open       []Slot // parts of split slots that are not finished
	Counts     Counts // of both passes
	Keeper     string
	Now        time.Time // the state's clock
	Started    time.Time // first IN_PROGRESS
}

// A Held is a slot that is being worked on.
type Held struct {
	Pass   Pass
	Slot   Slot
	Worker string
	Epoch  uint64
	Counts Counts
}
