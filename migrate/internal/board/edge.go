package board

import (
	"cmp"

	"github.com/tallystick/tallystick/migrate"
)

// An edge is a change of status.
type edge struct{ from, to migrate.Status }

// A Condition is what has to hold for a change of status, besides the status
// and the generation it begins at.
type Condition string

// The conditions.
const (
	Never    Condition = "never"    // there is no such change
	Always   Condition = "always"   // nothing
	Idle     Condition = "idle"     // no claim is live
	Complete Condition = "complete" // Idle, everything is finished, and the phase is done
)

// Edge returns the condition of a change of status.
func Edge(from, to migrate.Status) Condition { return cmp.Or(edges[edge{from, to}], Never) }

// edges are the changes of status that there are.
var edges = map[edge]Condition{
	{migrate.NotStarted, migrate.ToStart}:  Always,
	{migrate.Stopped, migrate.ToStart}:     Always,
	{migrate.ToStart, migrate.InProgress}:  Always,
	{migrate.ToStart, migrate.ToStop}:      Always,
	{migrate.InProgress, migrate.ToStop}:   Always,
	{migrate.ToStop, migrate.Stopped}:      Idle,
	{migrate.InProgress, migrate.Finished}: Complete,
}

// phases are the phases in their order.
var phases = []migrate.Phase{migrate.PhaseCopy, migrate.PhaseSweep, migrate.PhaseOutbox, migrate.PhaseDone}
