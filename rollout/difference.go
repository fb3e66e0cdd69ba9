package rollout

import "fmt"

// A Difference is a row that the sides do not agree on.
type Difference[K comparable] struct {
	Key      K
	Kind     Kind
	Old, New int64 // versions; 0: not there
}

// A Kind says what kind of difference it is.
type Kind uint8

// The kinds. A write under way looks like Behind for a moment, and like Extra
// when it deletes; Ahead and Content are defects whenever they come.
const (
	Same    Kind = iota
	Behind       // new has less: nothing, or an older version
	Extra        // new has a row that old has not
	Ahead        // new has a newer version, or a tombstone of one
	Content      // new has the same version with other content
)

// String returns the kind's name.
func (k Kind) String() string {
	names := [...]string{"same", "behind", "extra", "ahead", "content"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// kindOf decides what a row of old and what new has are to each other.
func kindOf[V any](row Row[V], found bool, held Held[V], equal func(a, b V) bool) Kind {
	switch {
	case !found && held.found():
		return Extra
	case !found:
		return Same
	case held.Version < row.Version:
		return Behind
	case held.Version > row.Version:
		return Ahead
	case held.Deleted || !equal(row.Value, held.Value):
		return Content
	}
	return Same
}
