// Package migrate copies a table of billions of rows from one database to
// another while both are in use: by many workers in many processes, resumable
// after any failure, and verified row by row.
//
// # Model
//
// The key is cut into slots along an [Axis]; a [Source] pages the rows of a
// slot, a [Sink] writes them, a [State] keeps progress and locks for all
// processes. The source and the sink are written to meanwhile by the
// application, which writes both; package rollout has what it needs for that.
//
// # Guarantees
//
// No row is lost: a slot is finished when every row that could be read in it
// is acknowledged by the sink or in quarantine; the newest slots are read
// again, for what was committed late; a full verification compares every row.
// No newer row is overwritten, in the guarded mode: a write is conditional on
// the version that it replaces.
package migrate
