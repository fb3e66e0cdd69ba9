package migrate

import (
	"errors"
	"fmt"
)

// The sentinels, to be used with errors.Is.
var (
	// ErrTransient: it may work when tried again.
	ErrTransient = errors.New("migrate: failed for now")
	// ErrOtherPlan: the state belongs to another migration, or to another plan
	// of this one; see [OtherPlanError].
	ErrOtherPlan = errors.New("migrate: another plan")
	// ErrStateLost: the state was emptied or set back while the migration
	// went on. Nothing may continue until it is reset.
	ErrStateLost = errors.New("migrate: state lost")
	// ErrNotHeld: the claim has expired, was taken over or was given up.
	// Nothing was written.
	ErrNotHeld = errors.New("migrate: claim not held")
	// ErrNoSlot: nothing can be claimed now.
	ErrNoSlot = errors.New("migrate: no slot free")
	// ErrWrongStatus: the migration's status does not allow it.
	ErrWrongStatus = errors.New("migrate: status does not allow it")
)

// A PlanError is what is wrong with a plan: where, and what to do.
type PlanError struct {
	Line    int    // of the file; 0 if it is of no one line
	Field   string // like "source.key"
	Message string
	Remedy  string
}

// Error returns it in one line.
func (e *PlanError) Error() string {
	s := "plan"
	if e.Line > 0 {
		s += fmt.Sprintf(", line %d", e.Line)
	}
	if e.Field != "" {
		s += ": " + e.Field
	}
	s += ": " + e.Message
	if e.Remedy != "" {
		s += " (" + e.Remedy + ")"
	}
	return s
}
