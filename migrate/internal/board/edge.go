package board

import "github.com/tallystick/tallystick/migrate"

// An edge is a change of status.
type edge struct{ from, to migrate.Status }

// What has to hold for an edge besides its status and generation.
type condition uint8

const (
	always condition = iota + 1
	idle             // no claim is live
	done             // idle, everything is finished, and the phase is done
)

// edges are the changes of status that there are.
var edges = map[edge]condition{
	{migrate.NotStarted, migrate.ToStart}:  always,
	{migrate.Stopped, migrate.ToStart}:     always,
	{migrate.ToStart, migrate.InProgress}:  always,
	{migrate.ToStart, migrate.ToStop}:      always,
	{migrate.InProgress, migrate.ToStop}:   always,
	{migrate.ToStop, migrate.Stopped}:      idle,
	{migrate.InProgress, migrate.Finished}: done,
}

// phases are the phases in their order.
var phases = []migrate.Phase{migrate.PhaseCopy, migrate.PhaseSweep, migrate.PhaseOutbox, migrate.PhaseDone}
