// Package migredis keeps the state of a migration in Redis, for many pods.
//
// # Keys
//
// All begin with the plan's prefix (mgre:) so that one scan lists or removes
// everything:
//
//	status            NOT_STARTED, TO_START, IN_PROGRESS, TO_STOP, STOPPED or FINISHED
//	plan              JSON: the plan as the first pod wrote it, and its slots
//	run               random identity of the run
//	epoch             counter: each claim, each Keeper's term, each split. It outlives a reset
//	keeper            "EPOCH NAME" of the Keeper; expires
//	last_slot         every slot up to here, in the order of the walk, is finished
//	finished          hash by pass: spans of slot indexes, "LO:HI LO:HI", coalesced
//	ledger            list of JSON: a line for each finished slot
//	SLOT:worker       "EPOCH TOKEN WORKER" of who holds the slot; expires after the lock's TTL
//	SLOT:states       JSON {status, last_id, lo, counts, digest}; expires after the progress TTL
//	SLOT:sweep:...    the same in the second pass
//	open              hash by "PASS SLOT": what was claimed and is not finished, and pieces of split slots
//	control           hash: generation, phase, started, wanted; wrote and cleared, of what no slot tells
//	counts            hash: what became of the rows of finished slots
//	ended             hash by epoch: how the latest claims ended, so that Finish can be repeated
//	quarantine        hash by key: JSON of rows that cannot be stored
//	quarantine:keys   sorted set of those keys
//	verdict           JSON: outcome of the last verification
//	mark              hash: how far the verification under way has come, in JSON, and whose it is
//
// Besides those fixed ones there are two keys for each slot that is worked on
// and one for each that was begun or split: some hundreds, however many slots
// there are. Slot indexes times the slots' width, and counts of rows of one
// slot, must be below 2^53, because Lua computes in float64.
//
// # Guarantees
//
// Each call is one Lua script, so it happens wholly or not at all. Each one
// checks that the run is the one the pod joined and that the epoch never fell;
// each write of a claim's owner, that its epoch and token hold the slot. Time is
// Redis's own.
//
// # Failure
//
// A reply that is lost leaves the outcome unknown ([migrate.ErrTransient]).
// Save, Split, Finish and Release may be repeated with the same claim. A Claim
// that happened unknown to its pod expires like any other. Where Redis loses
// acknowledged writes, by a failover or a restart without an append-only file,
// a pod stops with [migrate.ErrStateLost] as soon as it sees an epoch below one
// it has seen. One primary is needed: a cluster, a replica, and a server that
// may evict keys are refused.
package migredis
