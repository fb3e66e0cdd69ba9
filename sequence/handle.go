package sequence

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Sequence is a client's handle of one sequence. It is safe for concurrent
// use; [Client.Sequence] returns it.
type Sequence struct {
	current atomic.Pointer[cursor] // replaced only once it is used up
	client  *Client
	name    string

	mu      sync.Mutex
	queue   []*cursor // runs after current, in the order to use them
	waiting []*taker  // calls that the cache could not serve, in the order they came
	closed  bool

	epoch   uint64 // of the newest lease
	version uint32 // of the definition the cache belongs to; 0: no lease yet
	floor   *Floor // the last value ever held
	cache   CachePolicy

	finished int64 // values of the runs used up before current
	meter    meter
	calls    calls
}

// A cursor hands out one run without a lock. Positions at or beyond limit are
// looked at by the slow path: it refills, or goes on to the next run.
type cursor struct {
	first, step int64
	limit       atomic.Int64 // at most count
	_           [40]byte     // keeps next off the line above, which all read
	next        atomic.Int64 // the next position; beyond count once used up
	_           [56]byte
	count       int64
	leaseID     string
	offset      int64 // position in the lease of the run's first value
}

// farBeyond is a position no run has: a cursor moved there is used up.
const farBeyond = 1 << 62

func newSequence(c *Client, name string) *Sequence {
	s := &Sequence{client: c, name: name, cache: CachePolicy{
		Min: DefaultClientCacheMin, Max: DefaultClientCacheMax, Buffer: DefaultBufferSeconds * time.Second,
	}}
	s.current.Store(new(cursor))
	return s
}

// Next returns the next value; see [Client.Next]. As long as its run lasts it
// costs little more than adding to a shared variable: no lock, no clock, no
// allocation.
func (s *Sequence) Next(ctx context.Context) (int64, error) {
	c := s.current.Load()
	i := c.next.Add(1) - 1
	if i < c.limit.Load() {
		return c.first + i*c.step, nil
	}
	return s.slowNext(ctx, c, i)
}

// slowNext serves position i of c, which lies at its limit or beyond.
func (s *Sequence) slowNext(ctx context.Context, c *cursor, i int64) (int64, error) {
	if i < c.count {
		if s.mu.TryLock() { // else somebody else is looking
			s.look(time.Now())
			s.mu.Unlock()
		}
		return c.first + i*c.step, nil
	}
	got, err := s.take(ctx, 1)
	if err != nil {
		return 0, err
	}
	return got[0].First, nil
}

// NextN returns the next n values in order, 1 to MaxLeaseCount. They need not
// be neighbours: other callers and other clients may hold values in between.
// It returns all n or an error; after an error none is used.
func (s *Sequence) NextN(ctx context.Context, n int) ([]int64, error) {
	if n < 1 || n > MaxLeaseCount {
		return nil, invalid("count", fmt.Sprintf("ask for 1 to %d values", MaxLeaseCount), "%d is out of range", n)
	}
	runs, err := s.take(ctx, int64(n))
	if err != nil {
		return nil, err
	}
	values := make([]int64, 0, n)
	for _, r := range runs {
		for i := range r.Count {
			values = append(values, r.At(i))
		}
	}
	return values, nil
}

// Name returns the name of the sequence.
func (s *Sequence) Name() string { return s.name }

// A taker is a call that waits for values: want of them, or, if that is 0,
// until there are any.
type taker struct {
	want int64
	got  []part
	done chan error // has room for the one result
}

// A part is some values of a cursor's run.
type part struct {
	Run
	cursor *cursor
	at     int64 // position in the cursor
}

// take returns want values. Calls are served in the order they came.
func (s *Sequence) take(ctx context.Context, want int64) ([]Run, error) {
	t := &taker{want: want, done: make(chan error, 1)}
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, ErrClosed
	case len(s.waiting) == 0 && s.serve(t):
		s.look(time.Now())
		s.mu.Unlock()
		return t.runs(), nil
	case len(s.waiting) >= maxWaitingNext:
		s.putBack(t)
		s.mu.Unlock()
		return nil, &Error{Code: CodeUnavailable, Field: "name", Message: fmt.Sprintf("%d calls wait for sequence %q already", maxWaitingNext, s.name), RetryAfter: retryAfter}
	}
	s.waiting = append(s.waiting, t)
	s.client.stats.blocked.Add(1)
	s.fetch(time.Now())
	s.mu.Unlock()
	return s.await(ctx, t)
}

// await waits for t to be served until ctx ends.
func (s *Sequence) await(ctx context.Context, t *taker) ([]Run, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxWait)
		defer cancel()
	}
	select {
	case err := <-t.done:
		return t.runs(), err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case err := <-t.done: // served in the same moment
		return t.runs(), err
	default:
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(x *taker) bool { return x == t })
	s.putBack(t)
	s.serveWaiting()
	return nil, s.waitedInVain(context.Cause(ctx))
}

// waitedInVain returns the error of a call whose context ended. Requires s.mu.
func (s *Sequence) waitedInVain(cause error) error {
	if s.calls.failure != nil {
		cause = fmt.Errorf("%w; the last try to get some: %w", cause, s.calls.failure)
	}
	return &Error{Code: CodeUnavailable, Message: fmt.Sprintf("no value of sequence %q in time", s.name),
		Remedy: "check that the server runs and can be reached", RetryAfter: retryAfter, Err: cause}
}

// runs returns what a taker got.
func (t *taker) runs() []Run {
	var runs []Run
	for _, p := range t.got {
		runs = append(runs, p.Run)
	}
	return runs
}

// serve gives t values of the cache and reports whether it has all it wants.
// Requires s.mu.
func (s *Sequence) serve(t *taker) bool {
	for {
		c := s.current.Load()
		if t.want > 0 {
			if i := c.next.Add(t.want) - t.want; i < c.count {
				n := min(t.want, c.count-i)
				t.got = append(t.got, part{Run{c.first + i*c.step, c.step, n}, c, i})
				t.want -= n
			}
		} else if c.next.Load() < c.count {
			return true
		}
		if t.want == 0 && t.got != nil {
			return true
		}
		if !s.switchRun(c) {
			return false
		}
	}
}

// switchRun makes the next run of the queue current. It is called only when c,
// the current one, is used up: that keeps values in order. Requires s.mu.
func (s *Sequence) switchRun(c *cursor) bool {
	if len(s.queue) == 0 {
		return false
	}
	s.finished += c.count
	s.current.Store(s.queue[0])
	s.queue = slices.Delete(s.queue, 0, 1)
	return true
}

// serveWaiting serves those who wait as far as the cache goes. Requires s.mu.
func (s *Sequence) serveWaiting() {
	for len(s.waiting) > 0 && s.serve(s.waiting[0]) {
		s.waiting[0].done <- nil
		s.waiting = slices.Delete(s.waiting, 0, 1)
	}
}

// refuseWaiting gives everybody who waits err, and puts back what they had got
// so far. Requires s.mu.
func (s *Sequence) refuseWaiting(err error) {
	waiting := s.waiting
	s.waiting = nil
	for _, t := range waiting {
		s.putBack(t)
		t.done <- err
	}
}

// putBack puts what t got at the head of the cache: nobody was served since,
// because those who wait are served in order. Requires s.mu.
func (s *Sequence) putBack(t *taker) {
	for _, p := range slices.Backward(t.got) {
		c := &cursor{first: p.First, step: p.Step, count: p.Count, leaseID: p.cursor.leaseID, offset: p.cursor.offset + p.at}
		c.limit.Store(p.Count)
		s.queue = slices.Insert(s.queue, 0, c)
		s.finished -= p.Count
	}
	t.got = nil
}

// usage returns how many values were handed out and how many are cached.
func (s *Sequence) usage() (used, held int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usedNow(), s.held()
}

// usedNow returns how many values were handed out. Requires s.mu.
func (s *Sequence) usedNow() int64 {
	c := s.current.Load()
	return s.finished + min(c.next.Load(), c.count)
}

// held returns how many values are cached. Requires s.mu.
func (s *Sequence) held() int64 {
	c := s.current.Load()
	n := max(0, c.count-c.next.Load())
	for _, q := range s.queue {
		n += q.count
	}
	return n
}
