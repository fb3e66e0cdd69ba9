package sequence

import (
	"context"
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

var outcomes = []Outcome{OutcomeOK, OutcomeConflict, OutcomeUnavailable, OutcomeUnknown, OutcomeError}

// storeKinds are the requests to a store, by the method that sends them.
var storeKinds = []string{"create", "load", "advance", "swap", "list", "generation", "bump"}

// A StoreRequest names a class of store requests.
type StoreRequest struct {
	Kind    string // the [Store] method in lower case
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
	burned                                                               [4]atomic.Int64 // by the order of burnCauses
	refused                                                              [9]atomic.Int64 // by the order of refusalCodes
}

var refusalCodes = []Code{CodeInvalid, CodeNotFound, CodeExists, CodeExhausted, CodePrecondition, CodeAborted, CodeUnavailable, CodeUnknown, CodeInternal}

// burn counts n values as burned.
func (s *Service) burn(cause BurnCause, n int64) {
	for i, c := range burnCauses {
		if c == cause && n > 0 {
			s.counts.burned[i].Add(n)
		}
	}
}

func (s *Service) countRefusal(code Code) {
	for i, c := range refusalCodes {
		if c == code {
			s.counts.refused[i].Add(1)
		}
	}
}

// Stats returns a snapshot. Its time grows with the number of cached
// sequences; it is meant for a metrics page.
func (s *Service) Stats() ServiceStats {
	c := &s.counts
	st := ServiceStats{
		Granted: c.granted.Load(), Leases: c.leases.Load(), Misses: c.misses.Load(),
		Returned: c.returned.Load(), GivenBack: c.givenBack.Load(),
		Refills: c.refills.Load(), RefillsFailed: c.refillsFailed.Load(),
		Refused: make(map[Code]int64), Burned: make(map[BurnCause]int64), StoreRequests: s.store.requests(),
	}
	for i, cause := range burnCauses {
		st.Burned[cause] = c.burned[i].Load()
	}
	for i, code := range refusalCodes {
		if n := c.refused[i].Load(); n > 0 {
			st.Refused[code] = n
		}
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

// A countedStore counts the requests to a store by kind and outcome.
type countedStore struct {
	Store
	counts [7][5]atomic.Int64 // by the orders of storeKinds and outcomes
}

func newCountedStore(s Store) *countedStore { return &countedStore{Store: s} }

func (s *countedStore) requests() map[StoreRequest]int64 {
	m := make(map[StoreRequest]int64)
	for k, kind := range storeKinds {
		for o, outcome := range outcomes {
			if n := s.counts[k][o].Load(); n > 0 {
				m[StoreRequest{kind, outcome}] = n
			}
		}
	}
	return m
}

// count counts one request of the kind at index k.
func (s *countedStore) count(k int, err error) {
	s.counts[k][outcomeIndex(err)].Add(1)
}

func outcomeIndex(err error) int {
	switch CodeOf(err) {
	case "":
		return 0
	case CodeAborted, CodeExists:
		return 1
	case CodeUnavailable:
		return 2
	case CodeUnknown:
		return 3
	}
	return 4
}

func (s *countedStore) Create(ctx context.Context, records []Record) []error {
	errs := s.Store.Create(ctx, records)
	for _, err := range errs {
		s.count(0, err)
	}
	return errs
}

func (s *countedStore) Load(ctx context.Context, name string) (Record, error) {
	r, err := s.Store.Load(ctx, name)
	s.count(1, err)
	return r, err
}

func (s *countedStore) Advance(ctx context.Context, a Advance) (Record, error) {
	r, err := s.Store.Advance(ctx, a)
	s.count(2, err)
	return r, err
}

func (s *countedStore) Swap(ctx context.Context, nonce string, next Record) (Record, error) {
	r, err := s.Store.Swap(ctx, nonce, next)
	s.count(3, err)
	return r, err
}

func (s *countedStore) List(ctx context.Context, prefix, after string, limit int) ([]Record, string, bool, error) {
	r, last, more, err := s.Store.List(ctx, prefix, after, limit)
	s.count(4, err)
	return r, last, more, err
}

func (s *countedStore) Generation(ctx context.Context) (uint64, error) {
	g, err := s.Store.Generation(ctx)
	s.count(5, err)
	return g, err
}

func (s *countedStore) Bump(ctx context.Context) error {
	err := s.Store.Bump(ctx)
	s.count(6, err)
	return err
}
