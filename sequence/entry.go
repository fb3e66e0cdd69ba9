package sequence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tallystick/tallystick/internal/refill"
)

// An entry is a server's cache of one sequence. Everything a store says of the
// sequence arrives through its flight, of which there is at most one, so
// records are adopted in the order they were read.
type entry struct {
	service *Service
	name    string

	mu      sync.Mutex
	record  Record // the newest seen; Version 0: none yet
	broken  *Error // the store contradicted itself: nothing is granted any more
	gone    bool   // this entry is used no more: the sequence is not there, or the service was closed
	stock   stock
	window  refill.Window // values granted
	grants  grantLog
	waiting []*waiter // leases the stock could not serve, in the order they came

	suspect uint64    // service.suspect when record was read
	checked time.Time // when record was read
	flight  flight
}

// A flight is what an entry does at the store, from launch to landing.
type flight struct {
	landed   chan struct{} // closed when the one under way ends; nil: there is none
	launched time.Time     // when it began
	retryAt  time.Time     // after a failed one: none ahead of need before this
}

// A waiter is a lease that waits for the store.
type waiter struct {
	item  LeaseItem
	entry *entry
	asked bool             // a block was sized for it
	done  chan LeaseResult // has room for the one result
}

// cached returns how many values the stock has.
func (e *entry) cached() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stock.count
}

// begin serves item from the stock and returns nil, or queues it and returns
// the waiter. It does neither and reports false when e is not the cache of the
// sequence any more.
func (e *entry) begin(item LeaseItem) (LeaseResult, *waiter, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return LeaseResult{}, nil, false
	}
	if e.broken != nil {
		return LeaseResult{Name: item.Name, Err: e.broken}, nil, true
	}
	now := time.Now()
	if !e.worthABlock(item, now) {
		if r, ok := e.grant(item, now); ok {
			if e.due(now) && now.After(e.flight.retryAt) {
				e.launch(now)
			}
			return r, nil, true
		}
	}
	if len(e.waiting) >= maxWaiting {
		return LeaseResult{Name: item.Name, Err: &Error{Code: CodeUnavailable, Field: "name", RetryAfter: retryAfter,
			Message: fmt.Sprintf("%d leases of sequence %q wait for the store already", maxWaiting, e.name)}}, nil, true
	}
	e.service.counts.misses.Add(1)
	w := &waiter{item: item, entry: e, done: make(chan LeaseResult, 1)}
	e.waiting = append(e.waiting, w)
	e.launch(now)
	return LeaseResult{}, w, true
}

// worthABlock reports whether item asks for more than the stock has and than a
// block ahead of need would bring: it waits for one of its own, instead of
// getting what it wants in many small leases. While the store is known to be
// away it takes what there is. Requires e.mu.
func (e *entry) worthABlock(item LeaseItem, now time.Time) bool {
	if item.Count <= e.stock.count || e.stock.count == 0 || now.Before(e.flight.retryAt) {
		return false
	}
	return item.Count > blockPolicy(e.record, e.window.Total(now)).Max
}

// await returns what w gets. When ctx ends first, what it was granted in the
// same moment goes back into the stock.
func (w *waiter) await(ctx context.Context) LeaseResult {
	e := w.entry
	select {
	case r := <-w.done:
		return r
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = slices.DeleteFunc(e.waiting, func(x *waiter) bool { return x == w })
	select {
	case r := <-w.done:
		if r.Err == nil {
			e.giveUp(r)
		}
	default:
	}
	return LeaseResult{Name: w.item.Name, Err: &Error{Code: CodeUnavailable, RetryAfter: retryAfter,
		Message: "the store did not answer before the caller gave up", Err: context.Cause(ctx)}}
}

// grant leases values of the stock. Requires e.mu.
func (e *entry) grant(item LeaseItem, now time.Time) (LeaseResult, bool) {
	floor := item.Floor
	if floor != nil && floor.Epoch > e.record.Epoch {
		floor = nil // of an epoch that never was, or that this server cannot see yet
	}
	runs, epoch, burned := e.stock.take(item.Count, floor)
	e.service.burn(BurnedLeftOver, burned)
	if runs == nil {
		return LeaseResult{}, false
	}
	n := countRuns(runs)
	e.window.Add(now, n)
	r := LeaseResult{
		Name: e.name, Runs: runs, Epoch: epoch, Version: e.record.Version, LeaseID: e.service.leaseID(),
		Cache: cachePolicy(e.record.Definition),
	}
	e.grants.add(r)
	e.service.counts.leases.Add(1)
	e.service.counts.granted.Add(n)
	return r, true
}

// giveUp takes back a lease that never left this server. Requires e.mu.
func (e *entry) giveUp(r LeaseResult) {
	e.grants.end(r.LeaseID)
	e.service.counts.leases.Add(-1)
	e.service.counts.granted.Add(-r.Count())
	e.restock(r.Runs, r.Epoch, r.Version)
}

// restock puts runs back, or burns them if the sequence was changed since.
// Requires e.mu.
func (e *entry) restock(runs []Run, epoch uint64, version uint32) {
	switch {
	case e.gone:
		e.service.burn(BurnedLeftOver, countRuns(runs))
		return
	case version != e.record.Version:
		e.service.burn(BurnedAlter, countRuns(runs))
		return
	}
	for _, run := range runs {
		e.service.burn(BurnedLeftOver, e.stock.add(run, epoch))
	}
}

// due reports whether the next block is to be fetched before anybody waits for
// it. Requires e.mu.
func (e *entry) due(now time.Time) bool {
	if e.record.Exhausted && !e.record.Definition.Cycle {
		return false
	}
	level := blockPolicy(e.record, e.window.Total(now)).Level(e.service.estimate(&e.window, now))
	return e.stock.count < level.Threshold && e.stock.count < e.record.Definition.ServerCacheMax
}

// launch starts a flight unless one is under way. Requires e.mu.
func (e *entry) launch(now time.Time) {
	if e.flight.landed != nil {
		return
	}
	e.flight.landed, e.flight.launched = make(chan struct{}), now
	e.service.pool.do(e.fly)
}

// fly talks to the store until nobody waits any more.
func (e *entry) fly() {
	ctx, cancel := context.WithTimeout(e.service.life, storeTimeout)
	defer cancel()
	for e.leg(ctx) {
	}
}

// leg does one thing at the store: it reads the record, or takes a block. It
// reports whether there is more to do; otherwise the flight has ended. A panic
// of the store is an error of this flight only.
func (e *entry) leg(ctx context.Context) (again bool) {
	e.mu.Lock()
	suspect, seen, need := e.service.suspect.Load(), e.record, e.need()
	e.mu.Unlock()

	var block Block
	err := contain(func() (err error) {
		if seen.Version == 0 || need.size == nil {
			seen, err = e.service.store.Load(ctx, e.name)
		} else {
			block, seen, err = e.service.allocate(ctx, seen, need)
		}
		return err
	})

	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if seen.Version != 0 && (err == nil || definite(err)) {
		err = errors.Join(err, e.adopt(seen, block))
		e.suspect, e.checked = suspect, now
	}
	e.settle(err, need.floor, block, now)
	if len(e.waiting) > 0 && ctx.Err() == nil || err == nil && block.Count == 0 && e.due(now) {
		return true
	}
	e.refuse(ctx.Err())
	close(e.flight.landed)
	e.flight.landed = nil
	return false
}

// need returns what the next block is for: the lease that waits longest, or,
// if none does, the stock. Its size is nil when only the record is to be read.
// Requires e.mu.
func (e *entry) need() want {
	now := time.Now()
	d := demand{rate: e.service.estimate(&e.window, now), lately: e.window.Total(now), held: e.stock.count}
	for _, w := range e.waiting {
		d.waiting = min(d.waiting+w.item.Count, MaxLeaseCount)
		w.asked = true
	}
	switch {
	case len(e.waiting) > 0:
		return want{size: d.blockSize, floor: e.waiting[0].item.Floor}
	case e.due(now):
		return want{size: d.blockSize}
	}
	return want{}
}

// adopt takes over what the store said: r is the newest record, block was
// taken with it. Requires e.mu.
func (e *entry) adopt(r Record, block Block) error {
	old := e.record
	if at := r.Next; old.Version != 0 {
		if block.Count > 0 {
			at = block.First
		}
		if movedBack(old, r, at) {
			e.broken = &Error{Code: CodePrecondition, Field: "name",
				Message: fmt.Sprintf("the counter of sequence %q moved back from %d to %d in the store", e.name, old.Next, at),
				Remedy:  "if the store was restored, stop every server and run `tallystick seq adopt --skip N`"}
			e.service.log.Error("counter moved back; sequence stopped", "sequence", e.name, "was", old.Next, "is", at)
			e.service.burn(BurnedLeftOver, e.stock.drop()+block.Count)
			return e.broken
		}
		if r.Version != old.Version {
			e.service.burn(BurnedAlter, e.stock.drop())
		}
	}
	e.record = r
	if e.gone {
		e.service.burn(BurnedLeftOver, block.Count)
		return nil
	}
	e.service.burn(BurnedLeftOver, e.stock.add(block.Run, block.Epoch))
	return nil
}

// movedBack reports whether the counter, now at at, stands before where it was
// without anybody having given values back or changed the sequence.
func movedBack(old, r Record, at int64) bool {
	if r.Epoch < old.Epoch || r.Version < old.Version {
		return true
	}
	return r.Epoch == old.Epoch && r.Version == old.Version && r.GiveBacks == old.GiveBacks &&
		at != old.Next && (at < old.Next) == (old.Definition.Increment > 0)
}

// settle serves those who wait, after a leg for a lease with floor that ended
// with err. Requires e.mu.
func (e *entry) settle(err error, floor *Floor, block Block, now time.Time) {
	if block.Count > 0 {
		e.service.counts.refills.Add(1)
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(w *waiter) bool {
		if err == nil && !w.asked && w.item.Count > e.stock.count {
			return false // came after this block was sized: the next one serves it whole
		}
		r, ok := e.grant(w.item, now)
		if ok {
			w.done <- r
		}
		return ok
	})
	switch {
	case err == nil:
	case errors.Is(err, ErrInvalid): // the floor, of a lease that may have been given up
		if len(e.waiting) > 0 && e.waiting[0].item.Floor == floor {
			e.waiting[0].done <- LeaseResult{Name: e.name, Err: asError(err)}
			e.waiting = e.waiting[1:]
		}
	default:
		e.refuse(err)
	}
	if err != nil && !definite(err) {
		e.service.counts.refillsFailed.Add(1)
		e.flight.retryAt = now.Add(retryInterval)
	}
}

// refuse gives everybody who waits err, if it is not nil. Requires e.mu.
func (e *entry) refuse(err error) {
	if err == nil {
		return
	}
	reason := asError(err)
	switch reason.Code {
	case CodeNotFound:
		reason, e.gone = notFound(e.name), true
		e.service.forget(e)
	case CodeUnknown: // nothing was granted, so asking again is safe
		reason = &Error{Code: CodeUnavailable, Message: "the store did not answer", RetryAfter: retryAfter, Err: err}
	}
	for _, w := range e.waiting {
		w.done <- LeaseResult{Name: e.name, Err: reason}
	}
	e.waiting = nil
}

// definite reports whether err is the store's own answer about the sequence,
// rather than the lack of one.
func definite(err error) bool {
	switch CodeOf(err) {
	case CodeNotFound, CodeExhausted, CodeInvalid, CodePrecondition:
		return true
	}
	return false
}

// contain runs f and turns its panic into an error.
func contain(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Code: CodeInternal, Message: fmt.Sprintf("panic: %v", p)}
		}
	}()
	return f()
}

// asError returns err as an [Error].
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &Error{Code: CodeUnavailable, Message: "the store does not answer", RetryAfter: retryAfter, Err: err}
	}
	return &Error{Code: CodeInternal, Message: "the store failed", Err: err}
}
