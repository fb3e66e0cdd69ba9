package migrate

import (
	"fmt"
	"strings"
)

// An OtherPlanError is the error of a plan that is not the one in the state. It
// matches [ErrOtherPlan].
type OtherPlanError struct{ Theirs, Ours PlanRecord }

// owns returns an [OtherPlanError] if a state with the plan theirs is not p's.
func (p Plan) owns(theirs PlanRecord) error {
	if ours := p.record(); theirs.Hash != "" && (theirs.Hash != ours.Hash || theirs.Name != ours.Name) {
		return &OtherPlanError{theirs, ours}
	}
	return nil
}

// OtherMigration reports whether the state is not even of a migration of the
// same name.
func (e *OtherPlanError) OtherMigration() bool { return e.Theirs.Name != e.Ours.Name }

// Remedy says what to do.
func (e *OtherPlanError) Remedy() string {
	if e.OtherMigration() {
		return "choose another state.prefix, or with a file another state.path: each migration has its own"
	}
	return "use the plan that it was started with, or another name and state"
}

// Error says where the plans differ first.
func (e *OtherPlanError) Error() string {
	return fmt.Sprintf("%v: %s", ErrOtherPlan, e.difference())
}

// Unwrap returns [ErrOtherPlan].
func (e *OtherPlanError) Unwrap() error { return ErrOtherPlan }

func (e *OtherPlanError) difference() string {
	if e.OtherMigration() {
		return fmt.Sprintf("the state is of %q, this plan is %q", e.Theirs.Name, e.Ours.Name)
	}
	if i, theirs, ours := firstDifference(e.Theirs.Text, e.Ours.Text); i >= 0 {
		return fmt.Sprintf("line %d is %s here and %s in the state", i+1, ours, theirs)
	}
	if i, theirs, ours := firstDifference(e.Theirs.Values, e.Ours.Values); i >= 0 {
		return fmt.Sprintf("with the environment it has %s here and %s in the state", ours, theirs)
	}
	return fmt.Sprintf("its hash is %s here and %s in the state", e.Ours.Hash, e.Theirs.Hash)
}

// firstDifference returns the first line in which two texts differ, and -1 if
// there is none.
func firstDifference(a, b string) (i int, inA, inB string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(as), len(bs)) {
		if inA, inB := quotedLine(as, i), quotedLine(bs, i); inA != inB {
			return i, inA, inB
		}
	}
	return -1, "", ""
}

func quotedLine(lines []string, i int) string {
	if i >= len(lines) {
		return "missing"
	}
	return fmt.Sprintf("%q", lines[i])
}
