package rollout

import "fmt"

// A Phase says which side is written and which is read. The zero Phase is
// OldOnly.
type Phase uint8

// The phases in their order. See the package comment for the steps between.
const (
	OldOnly   Phase = iota // as before
	WriteBoth              // write both, read old
	Compare                // write both, read old, compare it with new
	NewFirst               // write both, read new and fall back on old
	NewOnly                // old is not touched
)

var phaseNames = [...]string{"old-only", "write-both", "compare", "new-first", "new-only"}

// String returns the phase's name, like "write-both".
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// ParsePhase is the inverse of [Phase.String].
func ParsePhase(name string) (Phase, error) {
	for i, n := range phaseNames {
		if n == name {
			return Phase(i), nil
		}
	}
	return OldOnly, fmt.Errorf("rollout: %q is no phase (use old-only, write-both, compare, new-first or new-only)", name)
}
