package sequence

import (
	"context"
	"time"
)

// Limits of a lease, checked by [Service].
const (
	MaxLeaseCount = 1_000_000 // values asked for one sequence
	MaxLeaseItems = 1_000     // sequences in one request
)

// A Leaser grants values. It is what a [Client] needs; [Service] grants them
// from a store and seqrpc.Client from a server far away.
type Leaser interface {
	// Lease grants values of several sequences. The error is of the whole
	// call; what befell one sequence stands in its result. A result without
	// an error has at least one value; it may have fewer than asked for. A
	// lease whose reply is lost is burned: asking again grants other values.
	Lease(ctx context.Context, req LeaseRequest) (LeaseResponse, error)

	// Return gives back the end of a lease. It succeeds once, at the server
	// that granted it and in the same epoch and version; a repetition
	// succeeds without effect. Otherwise it fails with [ErrPrecondition] and
	// the values are burned.
	Return(ctx context.Context, req ReturnRequest) error
}

// A LeaseRequest asks for values.
type LeaseRequest struct {
	ClientID string // names the client in logs; free text
	Items    []LeaseItem
}

// A LeaseItem asks for values of one sequence.
type LeaseItem struct {
	Name         string
	Count        int64   // 1 to MaxLeaseCount
	Floor        *Floor  // the last value the client holds; nil: it holds none
	KnownVersion uint32  // the newest definition version the client has seen; 0: none
	RateHint     float64 // values a second the client consumes; 0: not known
}

// A Floor is the last value a client holds of one epoch. The server grants
// only values beyond it, so that values rise within one client whichever
// servers it talks to, and none of an older epoch. A floor of an epoch before
// the sequence's own, or that never was, is ignored.
type Floor struct {
	Epoch uint64
	Last  int64
}

// A LeaseResponse answers a [LeaseRequest] item by item, in its order.
type LeaseResponse struct {
	Results []LeaseResult
}

// A LeaseResult is a lease, or why there is none.
type LeaseResult struct {
	Name    string
	Runs    []Run // in the order to hand them out
	Epoch   uint64
	Version uint32 // of the definition
	LeaseID string
	Cache   CachePolicy
	Err     *Error // if not nil, nothing was granted
}

// Count returns the number of values granted.
func (r LeaseResult) Count() int64 { return countRuns(r.Runs) }

// A CachePolicy tells a client how to cache a sequence.
type CachePolicy struct {
	Min, Max     int64         // bounds of what a full cache holds
	MinThreshold int64         // refill when this few are left; 0: a fifth of the cache
	Buffer       time.Duration // consumption to keep ahead
}

// A ReturnRequest gives back the values of a lease from position From on, the
// first value of the first run being 0.
type ReturnRequest struct {
	Name    string
	LeaseID string
	From    int64
	Count   int64 // how many values that is; lets a server that does not know the lease count what is burned
}

// countRuns returns the number of values in runs.
func countRuns(runs []Run) int64 {
	var n int64
	for _, r := range runs {
		n += r.Count
	}
	return n
}
