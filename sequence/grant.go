package sequence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Lease grants values; see [Leaser]. Sequences that need the store are asked
// for at once, each by one request however many leases wait for it.
func (s *Service) Lease(ctx context.Context, req LeaseRequest) (LeaseResponse, error) {
	if e := s.failure.Load(); e != nil {
		return LeaseResponse{}, e
	}
	if n := len(req.Items); n == 0 || n > MaxLeaseItems {
		return LeaseResponse{}, invalid("items", fmt.Sprintf("ask for 1 to %d sequences at once", MaxLeaseItems), "has %d entries", n)
	}
	if err := checkText("client_id", req.ClientID, 0); err != nil {
		return LeaseResponse{}, err
	}
	s.log.Debug("lease", "client", req.ClientID, "sequences", len(req.Items))
	results := make([]LeaseResult, len(req.Items))
	for i, item := range req.Items {
		if err := item.validate(); err != nil {
			results[i] = LeaseResult{Name: item.Name, Err: err}
		} else if e, err := s.entry(item.Name); err != nil {
			return LeaseResponse{}, err
		} else {
			e.check(item)
		}
	}
	waiters := make([]*waiter, len(req.Items))
	for i, item := range req.Items {
		if results[i].Err == nil {
			results[i], waiters[i] = s.begin(ctx, item)
		}
	}
	for i, w := range waiters {
		if w != nil {
			results[i] = w.await(ctx)
		}
		if err := results[i].Err; err != nil {
			s.counts.refused.add(err.Code, 1)
		}
	}
	return LeaseResponse{Results: results}, nil
}

// begin serves item from the cache, or returns a waiter for it.
func (s *Service) begin(ctx context.Context, item LeaseItem) (LeaseResult, *waiter) {
	for {
		e, err := s.entry(item.Name)
		if err != nil {
			return LeaseResult{Name: item.Name, Err: asError(err)}, nil
		}
		e.awaitCheck(ctx, item)
		if r, w, ok := e.begin(item); ok {
			return r, w
		}
	}
}

func (item LeaseItem) validate() *Error {
	if err := CheckName(item.Name); err != nil {
		return asError(err)
	}
	if item.Count < 1 || item.Count > MaxLeaseCount {
		return invalid("count", fmt.Sprintf("ask for 1 to %d values", MaxLeaseCount), "%d is out of range", item.Count)
	}
	return nil
}

// stale reports whether the store is to be asked about the sequence before it
// is granted from again: something changed there, it was long ago, or the
// client has seen a newer state. Requires e.mu.
func (e *entry) stale(item LeaseItem, now time.Time) bool {
	switch {
	case e.record.Version == 0 || now.Before(e.flight.retryAt):
		return false
	case e.suspect != e.service.suspect.Load():
		return true
	}
	since := now.Sub(e.checked)
	newer := item.KnownVersion > e.record.Version || item.Floor != nil && item.Floor.Epoch > e.record.Epoch
	return since > checkInterval || newer && since > retryInterval
}

// check starts a look at the store if one is due.
func (e *entry) check(item LeaseItem) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); e.stale(item, now) {
		e.launch(now)
	}
}

// awaitCheck waits until that look has ended, but not long: while the store
// does not answer, what is cached is granted. That delays an alter; it cannot
// grant a value twice, since what is cached is this server's own.
func (e *entry) awaitCheck(ctx context.Context, item LeaseItem) {
	e.mu.Lock()
	now := time.Now()
	landed, left := e.flight.landed, checkPatience-now.Sub(e.flight.launched)
	stale := e.stale(item, now)
	e.mu.Unlock()
	if !stale || landed == nil || left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-landed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Return takes back the end of a lease; see [Leaser].
func (s *Service) Return(_ context.Context, req ReturnRequest) error {
	if err := CheckName(req.Name); err != nil {
		return err
	}
	if req.From < 0 || req.From > MaxLeaseCount {
		return invalid("from_position", "send the position of the first value not used", "%d is out of range", req.From)
	}
	if req.Count < 0 || req.Count > MaxLeaseCount {
		return invalid("count", "send how many values are given back", "%d is out of range", req.Count)
	}
	if !strings.HasPrefix(req.LeaseID, s.id+"-") {
		s.burn(BurnedReturn, req.Count)
		return &Error{Code: CodePrecondition, Field: "lease_id", Message: "the lease was granted by another server process; its values are burned",
			Remedy: "return a lease to the server that granted it, while it runs"}
	}
	s.mu.Lock()
	e := s.entries[req.Name]
	s.mu.Unlock()
	if e == nil {
		e = &entry{service: s, name: req.Name} // has granted nothing
	}
	return e.takeBack(req)
}

func (e *entry) takeBack(req ReturnRequest) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.grants.find(req.LeaseID)
	switch {
	case e.gone, g == nil:
		e.service.burn(BurnedReturn, req.Count)
		return &Error{Code: CodePrecondition, Field: "lease_id", Message: "the lease is not known any more; its values are burned",
			Remedy: "return leases as soon as they are not needed"}
	case g.ended:
		return nil
	case req.From > countRuns(g.runs):
		return invalid("from_position", "send the position of the first value not used", "%d lies beyond the lease", req.From)
	}
	g.ended = true
	runs := suffix(g.runs, req.From)
	if g.version != e.record.Version || g.epoch != e.record.Epoch {
		e.service.burn(BurnedAlter, countRuns(runs))
		return &Error{Code: CodePrecondition, Field: "lease_id", Message: "the sequence was changed since the lease; its values are burned",
			Remedy: "nothing; values of the old definition are not granted again"}
	}
	e.service.counts.returned.Add(countRuns(runs))
	e.restock(runs, g.epoch, g.version)
	return nil
}

// giveBack ends e and returns the end of its stock to the store, in one write
// that only succeeds if the item is as this server saw it last: from the first
// of these values to the counter, all are this server's then. It holds e.mu
// during the call: nobody has any business with e now.
func (e *entry) giveBack(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone = true
	defer func() { e.service.burn(BurnedLeftOver, e.stock.drop()) }()
	tail := e.stock.tail(e.record)
	if tail.Count == 0 {
		return
	}
	next := e.record
	next.Next, next.Exhausted = tail.First, false
	next.GiveBacks++
	next.Nonce = NewNonce()
	now, err := e.service.store.Swap(ctx, e.record.Nonce, next)
	switch {
	case wrote(now, err, next.Nonce):
		e.service.counts.givenBack.Add(tail.Count)
	case errors.Is(err, ErrUnknownOutcome):
		e.service.burn(BurnedUnknown, tail.Count)
	default:
		e.service.burn(BurnedLeftOver, tail.Count)
	}
}

// maxGrants is how many leases of a sequence a server remembers, so that their
// ends can be returned. Those of older leases are burned.
const maxGrants = 256

// A grantLog remembers the newest leases of a sequence in the order they were
// granted. Not safe for concurrent use.
type grantLog struct {
	log []grant
}

// A grant is a lease as the server remembers it.
type grant struct {
	id      string
	epoch   uint64
	version uint32
	ended   bool // returned, or never sent
	runs    []Run
}

func (l *grantLog) add(r LeaseResult) {
	if len(l.log) >= maxGrants {
		l.log = append(l.log[:0], l.log[maxGrants/4:]...)
	}
	l.log = append(l.log, grant{id: r.LeaseID, epoch: r.Epoch, version: r.Version, runs: r.Runs})
}

func (l *grantLog) find(id string) *grant {
	for i := len(l.log) - 1; i >= 0; i-- {
		if l.log[i].id == id {
			return &l.log[i]
		}
	}
	return nil
}

func (l *grantLog) end(id string) {
	if g := l.find(id); g != nil {
		g.ended = true
	}
}

// leaseID returns a new lease id, which begins with the server's.
func (s *Service) leaseID() string {
	return s.id + "-" + strconv.FormatInt(s.serial.Add(1), 36)
}
