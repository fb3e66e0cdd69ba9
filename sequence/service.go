package sequence

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/internal/refill"
)

// How a Service treats its store. All are bounds, not tuning: none changes
// what is granted.
const (
	storeTimeout  = 5 * time.Second        // of one allocation with all its attempts
	pollInterval  = 2 * time.Second        // between two looks at the generation
	checkInterval = 5 * time.Minute        // after which a cached sequence is looked at anyhow
	checkPatience = 25 * time.Millisecond  // how long a lease waits for that look while it has values to grant
	retryInterval = time.Second            // between two looks that failed
	storeWorkers  = 64                     // store requests under way at once
	maxWaiting    = 1_000                  // leases waiting for the store per sequence
	maxEntries    = 1_000_000              // sequences cached
	retryAfter    = 200 * time.Millisecond // what a refused caller is told to wait
)

// ServiceOptions configures a [Service].
type ServiceOptions struct {
	Logger *slog.Logger // changes of state; nil: silent
}

// A Service grants values from a [Store]: it takes blocks, caches them in
// memory and grants parts of them as leases, refilling before a cache runs
// dry. Any number of services may share a store; none knows of the others. It
// implements [Leaser] and [Admin] and is safe for concurrent use.
//
// While the store is away it grants what it has cached.
type Service struct {
	id     string       // of this process; begins its lease ids
	serial atomic.Int64 // of its leases
	store  *countedStore
	log    *slog.Logger

	mu      sync.Mutex
	entries map[string]*entry
	closed  bool

	suspect atomic.Uint64 // raised when cached sequences are to be checked against the store
	failure atomic.Pointer[Error]
	pool    pool
	life    context.Context // ends with Close; its store calls end with it
	end     context.CancelFunc
	counts  counts

	estimate func(*refill.Window, time.Time) float64 // (*refill.Window).Rate; a test compares another
}

// NewService returns a service on store. It starts nothing: the caller runs
// [Service.Run] beside it, and calls [Service.Close] at the end.
func NewService(store Store, opts ServiceOptions) *Service {
	s := &Service{
		id:      rand.Text()[:12],
		log:     opts.Logger,
		entries: make(map[string]*entry),
		pool:    pool{limit: storeWorkers},

		estimate: (*refill.Window).Rate,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.store = &countedStore{Store: store}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

var (
	_ Leaser = (*Service)(nil)
	_ Admin  = (*Service)(nil)
)

// Run watches the store's generation until ctx ends, so that a change made
// through another server reaches this one within seconds. It returns nil then,
// and the store's error at once when it is no longer the one that was opened:
// from then on the service refuses every lease and every change.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var seen *uint64
	for {
		g, err := s.generation(ctx)
		switch {
		case CodeOf(err) == CodePrecondition:
			s.fail(err)
			return err
		case err != nil:
			s.log.Debug("store generation not read", "error", err)
		case seen == nil || *seen != g:
			if seen != nil {
				s.suspect.Add(1)
			}
			seen = &g
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) generation(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	return s.store.Generation(ctx)
}

// fail makes every later lease and change fail with err.
func (s *Service) fail(err error) { s.failure.CompareAndSwap(nil, asError(err)) }

// Ready returns nil if the service can grant values, and otherwise why not.
func (s *Service) Ready() error {
	if e := s.failure.Load(); e != nil {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return nil
}

// entry returns the cache of name, making an empty one if there is none.
func (s *Service) entry(name string) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, s.closing()
	}
	e := s.entries[name]
	if e == nil {
		if len(s.entries) >= maxEntries {
			return nil, &Error{Code: CodeUnavailable, Field: "name", RetryAfter: retryAfter,
				Message: fmt.Sprintf("this server caches %d sequences already", maxEntries)}
		}
		e = &entry{service: s, name: strings.Clone(name)}
		s.entries[e.name] = e
	}
	return e, nil
}

// forget removes an entry that turned out to be of no sequence.
func (s *Service) forget(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[e.name] == e {
		delete(s.entries, e.name)
	}
}

func (s *Service) closing() *Error {
	return &Error{Code: CodeUnavailable, Message: "this server is stopping", Remedy: "ask another server", RetryAfter: retryAfter, Err: ErrClosed}
}

// Close stops granting, waits for store requests under way, and gives back to
// the store what nobody was granted: per sequence the values that end where
// its counter stands, in one write. What cannot be given back is burned and
// counted: [Service.Stats] has both. When ctx ends first, the rest is burned.
//
// If the process dies before a give-back, the values are burned; a give-back
// whose reply is lost is not repeated.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	entries := maps.Clone(s.entries)
	s.mu.Unlock()

	s.pool.wait(ctx)
	for _, e := range entries {
		s.pool.do(func() { e.giveBack(ctx) })
	}
	err := s.pool.wait(ctx)
	s.end()
	return err
}
