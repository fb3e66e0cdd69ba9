// Package migbolt keeps the state of a migration in one local file, for one
// process.
//
// The file is a bbolt database with a bucket, "migration", of JSON by the
// keys of package board; anybody can read it:
//
//	bbolt get room_events.state migration header
//
// A census of the bucket stands in another one, "tallystick": a file in which
// anything is changed, missing or old is refused when it is opened, and left as
// it is.
//
// A write that returns nil has been fsynced. Writes that arrive while another
// is being fsynced share the next one. One process has the file open at a
// time, so [Open] knows that whoever held a slot before is gone, and frees it:
// after kill -9 the next process goes on at once from what was saved.
package migbolt
