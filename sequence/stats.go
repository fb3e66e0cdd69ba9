package sequence

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
)

// A BurnCause says why values will never be used.
type BurnCause string

// The causes a service counts. Values a crash burns nobody can count.
const (
	BurnedUnknown  BurnCause = "unknown_outcome" // a block whose write may or may not have happened
	BurnedAlter    BurnCause = "alter"           // cached under a definition that was altered, restarted or deleted
	BurnedLeftOver BurnCause = "left_over"       // left-overs beyond the limit, and what could not be given back at the end
	BurnedReturn   BurnCause = "return_refused"  // a lease's end that came too late or to the wrong server
)

var burnCauses = []BurnCause{BurnedUnknown, BurnedAlter, BurnedLeftOver, BurnedReturn}

// An Outcome says how a store request ended.
type Outcome string

// The outcomes of a store request.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeConflict    Outcome = "conflict"
	OutcomeUnavailable Outcome = "unavailable"
	OutcomeUnknown     Outcome = "unknown"
	OutcomeError       Outcome = "error" // any other refusal
)

// outcomeOf returns how a store request that failed with err, or nil, ended.
func outcomeOf(err error) Outcome {
	switch CodeOf(err) {
	case "":
		return OutcomeOK
	case CodeAborted, CodeExists:
		return OutcomeConflict
	case CodeUnavailable:
		return OutcomeUnavailable
	case CodeUnknown:
		return OutcomeUnknown
	}
	return OutcomeError
}

// An Op names a method of a [Store].
type Op string

// The methods.
const (
	OpCreate     Op = "create"
	OpLoad       Op = "load"
	OpAdvance    Op = "advance"
	OpSwap       Op = "swap"
	OpList       Op = "list"
	OpGeneration Op = "generation"
	OpBump       Op = "bump"
)

// Writes reports whether op changes the store.
func (op Op) Writes() bool {
	return op == OpCreate || op == OpAdvance || op == OpSwap || op == OpBump
}

// A StoreRequest names a class of store requests.
type StoreRequest struct {
	Op      Op
	Outcome Outcome
}

// ServiceStats is a snapshot of what a [Service] has done since it was made.
type ServiceStats struct {
	Granted       int64               // values granted
	Leases        int64               // leases granted
	Refused       map[Code]int64      // leases refused
	Misses        int64               // leases that had to wait for the store
	Returned      int64               // values clients gave back and that can be granted again
	GivenBack     int64               // values given back to the store by Close
	Refills       int64               // blocks taken
	RefillsFailed int64               // tries to take one that failed
	Burned        map[BurnCause]int64 // values that will never be used
	StoreRequests map[StoreRequest]int64

	Sequences int   // sequences in the cache
	Cached    int64 // values in the cache, all sequences together
}

// counts are a service's counters.
type counts struct {
	granted, leases, misses, returned, givenBack, refills, refillsFailed atomic.Int64

	burned  tally[BurnCause]
	refused tally[Code]
}

// A tally counts by key. The zero tally is empty. It is safe for concurrent
// use.
type tally[K comparable] struct {
	mu     sync.Mutex
	counts map[K]int64
}

// add counts n of k, if that is more than none.
func (t *tally[K]) add(k K, n int64) {
	if n <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[K]int64)
	}
	t.counts[k] += n
}

// snapshot returns what was counted, with a 0 for each of keys that was not.
func (t *tally[K]) snapshot(keys ...K) map[K]int64 {
	m := make(map[K]int64)
	for _, k := range keys {
		m[k] = 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(m, t.counts)
	return m
}

// burn counts n values as burned.
func (s *Service) burn(cause BurnCause, n int64) { s.counts.burned.add(cause, n) }

// Stats returns a snapshot. Its time grows with the number of cached
// sequences; it is meant for a metrics page.
func (s *Service) Stats() ServiceStats {
	c := &s.counts
	st := ServiceStats{
		Granted: c.granted.Load(), Leases: c.leases.Load(), Misses: c.misses.Load(),
		Returned: c.returned.Load(), GivenBack: c.givenBack.Load(),
		Refills: c.refills.Load(), RefillsFailed: c.refillsFailed.Load(),
		Refused: c.refused.snapshot(), Burned: c.burned.snapshot(burnCauses...), StoreRequests: s.store.requests.snapshot(),
	}
	s.mu.Lock()
	entries := make([]*entry, 0, len(s.entries))
	for _, e := range s.entries {
		entries = append(entries, e)
	}
	s.mu.Unlock()
	st.Sequences = len(entries)
	for _, e := range entries {
		st.Cached += e.cached()
	}
	return st
}

// A countedStore counts the requests to a store.
type countedStore struct {
	Store
	requests tally[StoreRequest]
}

// count counts one request.
func (s *countedStore) count(op Op, err error) { s.requests.add(StoreRequest{op, outcomeOf(err)}, 1) }

func (s *countedStore) Create(ctx context.Context, records []Record) []error {
	errs := s.Store.Create(ctx, records)
	for _, err := range errs {
		s.count(OpCreate, err)
	}
	return errs
}

func (s *countedStore) Load(ctx context.Context, name string) (Record, error) {
	r, err := s.Store.Load(ctx, name)
	s.count(OpLoad, err)
	return r, err
}

func (s *countedStore) Advance(ctx context.Context, a Advance) (Record, error) {
	r, err := s.Store.Advance(ctx, a)
	s.count(OpAdvance, err)
	return r, err
}

func (s *countedStore) Swap(ctx context.Context, nonce string, next Record) (Record, error) {
	r, err := s.Store.Swap(ctx, nonce, next)
	s.count(OpSwap, err)
	return r, err
}

func (s *countedStore) List(ctx context.Context, prefix, after string, limit int) ([]Record, string, bool, error) {
	r, last, more, err := s.Store.List(ctx, prefix, after, limit)
	s.count(OpList, err)
	return r, last, more, err
}

func (s *countedStore) Generation(ctx context.Context) (uint64, error) {
	g, err := s.Store.Generation(ctx)
	s.count(OpGeneration, err)
	return g, err
}

func (s *countedStore) Bump(ctx context.Context) error {
	err := s.Store.Bump(ctx)
	s.count(OpBump, err)
	return err
}
