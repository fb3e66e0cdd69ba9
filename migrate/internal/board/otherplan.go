package board

import (
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/migrate"
)

// OtherPlan is the error of a pod whose plan is not the one in the state. It
// matches [migrate.ErrOtherPlan].
type OtherPlan struct{ Theirs, Ours migrate.PlanRecord }

// Error says where the plans differ first.
func (e *OtherPlan) Error() string {
	return fmt.Sprintf("%v: %s", migrate.ErrOtherPlan, e.difference())
}

// Unwrap returns [migrate.ErrOtherPlan].
func (e *OtherPlan) Unwrap() error { return migrate.ErrOtherPlan }

func (e *OtherPlan) difference() string {
	if e.Theirs.Name != e.Ours.Name {
		return fmt.Sprintf("the state is of %q, this plan is %q", e.Theirs.Name, e.Ours.Name)
	}
	theirs, ours := strings.Split(e.Theirs.Text, "\n"), strings.Split(e.Ours.Text, "\n")
	for i := range max(len(theirs), len(ours)) {
		if a, b := line(theirs, i), line(ours, i); a != b {
			return fmt.Sprintf("line %d is %s here and %s in the state", i+1, b, a)
		}
	}
	return fmt.Sprintf("its hash is %s here and %s in the state", e.Ours.Hash, e.Theirs.Hash)
}

func line(lines []string, i int) string {
	if i >= len(lines) {
		return "missing"
	}
	return fmt.Sprintf("%q", lines[i])
}
