package sequence

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tallystick/tallystick/internal/refill"
)

// A meter measures how fast a handle's values are used.
type meter struct {
	window refill.Window
	seen   int64 // values used when window was last fed
}

// feed tells the meter how many values were used up to now.
func (m *meter) feed(now time.Time, used int64) {
	m.window.Add(now, max(0, used-m.seen))
	m.seen = used
}

// calls is where a handle stands with its calls for leases. There is at most
// one at a time.
type calls struct {
	asking  bool          // one is queued or under way
	asked   time.Time     // when it was queued
	used    int64         // values used by then
	backoff time.Duration // before the next one, after one that failed
	failure *Error        // of the last one; nil if it succeeded
	timer   *time.Timer   // starts the next one; nil if none is put off
}

// begin notes a call and returns how long to put it off, which is where the
// last one failed.
func (c *calls) begin(now time.Time, used int64) (wait time.Duration) {
	if c.backoff > 0 {
		wait = max(0, c.backoff/2+rand.N(c.backoff/2+1)-now.Sub(c.asked))
	}
	c.asking, c.asked, c.used = true, now, used
	return wait
}

// end notes how the call went. After the store's own answer there is nothing
// to wait for; otherwise the next call waits twice as long as this one did.
func (c *calls) end(failure *Error) {
	c.asking, c.failure = false, failure
	if failure == nil || definite(failure) {
		c.backoff = 0
		return
	}
	c.backoff = min(max(2*c.backoff, firstRetry, failure.RetryAfter), lastRetry)
}

// rate returns the estimate of the values used per second. Requires s.mu.
func (s *Sequence) rate(now time.Time) float64 {
	s.meter.feed(now, s.usedNow())
	return s.client.estimate(&s.meter.window, now)
}

// look fetches a lease if that is due; otherwise it sets where to look again.
// Requires s.mu.
func (s *Sequence) look(now time.Time) {
	level := s.cache.level(s.rate(now))
	held := s.held()
	next := int64(0) // values left at the next look; while a call is under way its answer is the look
	switch {
	case s.calls.asking:
	case !level.Due(held):
		next = level.NextLook(held)
	case now.Sub(s.calls.asked) < s.calls.backoff:
		next = max(0, held-1)
	default:
		s.launch(now)
	}
	c := s.current.Load()
	queued := held - max(0, c.count-c.next.Load())
	c.limit.Store(min(c.count, max(0, c.count+queued-next)))
}

// fetch calls for a lease because somebody waits. Requires s.mu.
func (s *Sequence) fetch(now time.Time) {
	if !s.calls.asking {
		s.launch(now)
	}
}

// launch queues a call, later if the last one failed. Requires s.mu.
func (s *Sequence) launch(now time.Time) {
	wait := s.calls.begin(now, s.usedNow())
	if wait == 0 {
		s.client.request(s)
		return
	}
	s.calls.timer = time.AfterFunc(wait, func() { s.client.request(s) })
}

// ask returns what to ask the server for: what fills the cache, or what those
// who wait need, if that is more.
func (s *Sequence) ask() LeaseItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	rate := s.rate(time.Now())
	count := s.cache.level(rate).Capacity - s.held()
	var demand int64
	for _, t := range s.waiting {
		demand += t.want
	}
	item := LeaseItem{
		Name: s.name, Count: min(max(1, count, demand), MaxLeaseCount),
		KnownVersion: s.version, RateHint: rate,
	}
	if s.floor != nil {
		f := *s.floor
		item.Floor = &f
	}
	return item
}

// failed ends a call that brought no lease.
func (s *Sequence) failed(err *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls.end(err)
	if definite(err) { // asking ahead of need is of no use any more
		s.refuseWaiting(err)
		c := s.current.Load()
		c.limit.Store(c.count)
		return
	}
	s.retry(time.Now())
}

// retry calls again for those who wait, and while values are being used up.
// Requires s.mu.
func (s *Sequence) retry(now time.Time) {
	if s.closed {
		s.refuseWaiting(ErrClosed)
		return
	}
	if len(s.waiting) > 0 || s.calls.backoff > 0 && s.usedNow() > s.calls.used {
		s.launch(now)
		return
	}
	c := s.current.Load()
	c.limit.Store(min(c.count, max(0, c.next.Load())))
}

// arrived takes over a lease and serves those who wait.
func (s *Sequence) arrived(r LeaseResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.client.stats.leases.Add(1)
	err := s.refusal(r)
	s.calls.end(err)
	if err != nil {
		s.drop([]ReturnRequest{{Name: s.name, LeaseID: r.LeaseID, Count: r.Count()}})
		s.retry(now)
		return
	}
	if s.version != 0 && r.Version != s.version {
		s.drop(s.discard())
	}
	s.version, s.epoch, s.cache = r.Version, r.Epoch, r.Cache
	offset := int64(0)
	for _, run := range r.Runs {
		c := &cursor{first: run.First, step: run.Step, count: run.Count, leaseID: r.LeaseID, offset: offset}
		c.limit.Store(run.Count)
		offset += run.Count
		s.queue = append(s.queue, c)
	}
	s.floor = &Floor{Epoch: r.Epoch, Last: r.Runs[len(r.Runs)-1].Last()}
	s.serveWaiting()
	if len(s.waiting) > 0 {
		s.fetch(now)
	}
	s.look(now)
}

// refusal returns why a lease cannot be used: the client was closed meanwhile,
// the server has not noticed a change yet, or it broke the contract. Requires
// s.mu.
func (s *Sequence) refusal(r LeaseResult) *Error {
	switch {
	case s.closed:
		return &Error{Code: CodeUnavailable, Message: "closed", Err: ErrClosed}
	case r.Version < s.version, r.Version == s.version && r.Epoch < s.epoch:
		return &Error{Code: CodeUnavailable, Message: "the server has not noticed a change of the sequence yet"}
	case !r.valid(s.floor):
		return &Error{Code: CodeInternal, Message: "the server granted values that are not beyond those before"}
	}
	return nil
}

// valid reports whether the runs are values in order beyond floor.
func (r LeaseResult) valid(floor *Floor) bool {
	if len(r.Runs) == 0 || r.Cache.Min < 1 || r.Cache.Max < r.Cache.Min {
		return false
	}
	if floor != nil && floor.Epoch != r.Epoch {
		floor = nil
	}
	last := floor
	for _, run := range r.Runs {
		if run.Count < 1 || run.Step == 0 || last != nil && run.upTo(last.Last) > 0 || !run.fits() {
			return false
		}
		last = &Floor{Last: run.Last()}
	}
	return true
}

// drop counts and returns leases that cannot be used. Requires s.mu.
func (s *Sequence) drop(unused []ReturnRequest) {
	for _, u := range unused {
		s.client.stats.dropped.Add(u.Count)
	}
	s.client.returnLeases(s.client.life, unused)
}

// discard empties the cache and returns what of it is to be given back.
// Requires s.mu.
func (s *Sequence) discard() []ReturnRequest {
	c := s.current.Load()
	used := min(c.next.Swap(farBeyond), c.count)
	var unused []ReturnRequest
	add := func(c *cursor, from int64) {
		n := c.count - from
		if n <= 0 {
			return
		}
		// What is unused of a lease is its end, in one piece.
		if i := slices.IndexFunc(unused, func(r ReturnRequest) bool { return r.LeaseID == c.leaseID }); i >= 0 {
			unused[i].Count += n
			return
		}
		unused = append(unused, ReturnRequest{Name: s.name, LeaseID: c.leaseID, From: c.offset + from, Count: n})
	}
	add(c, used)
	for _, q := range s.queue {
		add(q, 0)
	}
	s.finished += used
	s.queue = nil
	s.current.Store(new(cursor))
	return unused
}

// close ends the handle and returns what is to be given back.
func (s *Sequence) close() []ReturnRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.calls.timer != nil {
		s.calls.timer.Stop()
	}
	s.refuseWaiting(ErrClosed)
	return s.discard()
}
