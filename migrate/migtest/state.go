package migtest

import (
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/internal/board"
)

// A State is a [migrate.State] in memory, for tests. Its clock is the bubble's
// under testing/synctest.
type State struct {
	*board.State
	store *board.Memory
}

// NewState returns a state in which nothing was opened yet. It names slots by
// axis; without one, by the hour of a ULID.
func NewState(axis ...migrate.Axis) *State {
	axis = append(axis, migrate.Axis{By: migrate.ByULID, Width: time.Hour.Milliseconds()})
	store := new(board.Memory)
	return &State{State: board.New(store, axis[0]), store: store}
}

// Pod returns the same state as another pod sees it. Pods may also share one.
func (s *State) Pod() *State { return &State{State: s.State.Pod(), store: s.store} }

// Lose empties the state behind the back of the pods.
func (s *State) Lose() { s.store.Replace(nil) }

// Backup returns what sets the state back to what it is now.
func (s *State) Backup() (restore func()) {
	values := s.store.Copy()
	return func() { s.store.Replace(values) }
}
