package sequence

import (
	"math/rand/v2"
	"slices"
	"time"
)

// look feeds the window and fetches a lease if that is due; otherwise it sets
// where to look again. Requires s.mu.
func (s *Sequence) look(now time.Time) {
	used := s.usedNow()
	s.window.Add(now, max(0, used-s.seen))
	s.seen = used
	level := clientPolicy(s.cache).Level(s.client.estimate(&s.window, now))
	held := s.held()
	next := int64(0) // values left at the next look; while a call is under way its answer is the look
	switch {
	case s.asking:
	case !level.Due(held):
		next = level.NextLook(held)
	case now.Sub(s.asked) < s.backoff:
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
	if !s.asking {
		s.launch(now)
	}
}

// launch queues a call, later if the last one failed. Requires s.mu.
func (s *Sequence) launch(now time.Time) {
	s.asking = true
	wait := time.Duration(0)
	if s.backoff > 0 {
		wait = max(0, s.backoff/2+rand.N(s.backoff/2+1)-now.Sub(s.asked))
	}
	s.asked, s.used = now, s.usedNow()
	if wait == 0 {
		s.client.request(s)
		return
	}
	s.timer = time.AfterFunc(wait, func() { s.client.request(s) })
}

// ask returns what to ask the server for: what fills the cache, or what those
// who wait need, if that is more.
func (s *Sequence) ask() LeaseItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	used := s.usedNow()
	s.window.Add(now, max(0, used-s.seen))
	s.seen = used
	rate := s.client.estimate(&s.window, now)
	count := clientPolicy(s.cache).Level(rate).Capacity - s.held()
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
	s.asking, s.failure = false, err
	s.backoff = min(max(2*s.backoff, firstRetry, err.RetryAfter), lastRetry)
	if definite(err) { // asking ahead of need is of no use any more
		s.backoff = 0
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
	if len(s.waiting) > 0 || s.backoff > 0 && s.usedNow() > s.used {
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
	s.asking = false
	s.client.stats.leases.Add(1)
	if err := s.refusal(r); err != nil {
		s.drop([]ReturnRequest{{Name: s.name, LeaseID: r.LeaseID, Count: r.Count()}})
		s.failure, s.backoff = err, min(max(2*s.backoff, firstRetry), lastRetry)
		s.retry(now)
		return
	}
	s.failure, s.backoff = nil, 0
	if s.version != 0 && r.Version != s.version {
		s.drop(s.discard())
	}
	s.version, s.epoch, s.cache = r.Version, r.Epoch, r.Cache
	l, offset := &lease{id: r.LeaseID, count: r.Count()}, int64(0)
	for _, run := range r.Runs {
		c := &cursor{first: run.First, step: run.Step, count: run.Count, lease: l, offset: offset}
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

// fits reports whether every value of r lies within int64.
func (r Run) fits() bool {
	d := Definition{Increment: r.Step, Min: -1 << 63, Max: 1<<63 - 1}
	return uint64(r.Count-1) <= d.stepsFrom(r.First)
}

// drop counts and returns leases that cannot be used. Requires s.mu.
func (s *Sequence) drop(unused []ReturnRequest) {
	for _, u := range unused {
		s.client.stats.dropped.Add(u.Count)
	}
	s.client.giveBack(s.client.life, unused)
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
		if i := slices.IndexFunc(unused, func(r ReturnRequest) bool { return r.LeaseID == c.lease.id }); i >= 0 {
			unused[i].Count += n
			return
		}
		unused = append(unused, ReturnRequest{Name: s.name, LeaseID: c.lease.id, From: c.offset + from, Count: n})
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
	if s.timer != nil {
		s.timer.Stop()
	}
	s.refuseWaiting(ErrClosed)
	return s.discard()
}
