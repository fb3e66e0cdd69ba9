package shard

import "errors"

// What a call may come back with beside the database's own errors.
var (
	// ErrUnavailable tells that a database could not be reached or did not
	// answer in time. Nothing was written.
	ErrUnavailable = errors.New("shard: database unavailable")
	// ErrUnknown tells that the reply to a COMMIT was lost: the transaction is
	// there or it is not.
	ErrUnknown = errors.New("shard: outcome of the commit is unknown")
	// ErrMoved tells that the shard is elsewhere than this process thinks, or
	// is moving now. Nothing was written; try again.
	ErrMoved = errors.New("shard: the shard has moved")
	// ErrBusy tells that a lock was not free in time, or that the database gave
	// the transaction up for another's sake. Nothing was written; try again.
	ErrBusy = errors.New("shard: rows are locked by another transaction")
	// ErrDuplicate tells that a row with a unique key was there already.
	ErrDuplicate = errors.New("shard: duplicate key")
	// ErrNoMatch tells that a statement which had to match a row matched none.
	// Nothing was written.
	ErrNoMatch = errors.New("shard: no row matched")
	// ErrUnrouted tells that a statement names a shard's table but did not come
	// through a [Cluster], or names another shard's. It is a programmer's mistake.
	ErrUnrouted = errors.New("shard: statement without its shard key")
	// ErrBudget tells that a fan-out would go beyond its budget.
	ErrBudget = errors.New("shard: fan-out beyond its budget")
)
