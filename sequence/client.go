package sequence

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/internal/refill"
)

// Bounds of a client's calls to its servers.
const (
	leaseTimeout   = 5 * time.Second       // of one call for leases
	maxWait        = 30 * time.Second      // of Next, where its context has no deadline
	leaseCalls     = 32                    // calls under way at once
	leaseBatch     = 100                   // sequences in one call
	firstRetry     = 50 * time.Millisecond // after the first failed call; doubled for each further one
	lastRetry      = 2 * time.Second
	maxWaitingNext = 10_000 // calls of Next waiting per sequence
)

// ClientOptions configures a [Client].
type ClientOptions struct {
	ID     string       // names this client in the server's logs; "": random
	Logger *slog.Logger // changes of state; nil: silent
}

// A Client hands out values from leases it caches, and fetches new leases
// before they are used up. While no server answers it hands out what it has
// cached; after that Next waits for its context and says why. It is safe for
// concurrent use. Values rise (fall, when descending) in the order in which
// calls of one client follow each other, whichever handle they use.
type Client struct {
	leaser Leaser
	id     string
	log    *slog.Logger

	// Handles by name: published for readers without a lock, and all of them.
	published atomic.Pointer[map[string]*Sequence]
	mu        sync.Mutex
	all       map[string]*Sequence
	missed    int // look-ups in all since it was published
	closed    bool

	due   []*Sequence // sequences to ask for, guarded by mu
	pool  pool        // sends the calls
	life  context.Context
	end   context.CancelFunc
	stats clientCounts

	estimate func(*refill.Window, time.Time) float64 // (*refill.Window).Rate; a test compares another
}

// NewClient returns a client of leaser, which is a [Service] in this process
// or a connection to a server far away. It does nothing until it is asked for
// a value or to [Client.Warm]. Close it to give unused values back.
func NewClient(leaser Leaser, opts ClientOptions) *Client {
	c := &Client{
		leaser: leaser,
		id:     cmp.Or(opts.ID, rand.Text()[:8]),
		log:    opts.Logger,
		all:    make(map[string]*Sequence),
		pool:   pool{limit: leaseCalls},

		estimate: (*refill.Window).Rate,
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.published.Store(&map[string]*Sequence{})
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// Next returns the next value of the sequence called name. It normally answers
// from memory, without a lock. Otherwise it waits for a server until ctx ends,
// at most 30 s where ctx has no deadline. It fails with [ErrNotFound],
// [ErrExhausted], [ErrClosed] or, when no server answered in time, with
// [ErrUnavailable]; a value may be skipped then, never repeated.
func (c *Client) Next(ctx context.Context, name string) (int64, error) {
	if s, ok := (*c.published.Load())[name]; ok {
		return s.Next(ctx)
	}
	return c.Sequence(name).Next(ctx)
}

// NextN returns the next n values of the sequence called name, 1 to
// MaxLeaseCount, in order; see [Sequence.NextN].
func (c *Client) NextN(ctx context.Context, name string, n int) ([]int64, error) {
	return c.Sequence(name).NextN(ctx, n)
}

// Sequence returns the handle of the sequence called name, the same for each
// call. Its Next saves looking the name up. Whether the sequence exists shows
// when a value is asked for.
func (c *Client) Sequence(name string) *Sequence {
	if s, ok := (*c.published.Load())[name]; ok {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.all[name]
	if s == nil {
		s = newSequence(c, name)
		s.closed = c.closed
		c.all[s.name] = s
	}
	// Publishing copies the map; doing so once per as many look-ups as it has
	// entries keeps that cost constant for each.
	if c.missed++; c.missed*2 > len(c.all) {
		all := maps.Clone(c.all)
		c.published.Store(&all)
		c.missed = 0
	}
	return s
}

// Warm fetches first leases of the named sequences and returns when each has
// values, or with the first error. It is for start-up, before traffic comes.
func (c *Client) Warm(ctx context.Context, names ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var first error
	var once sync.Once
	var wg sync.WaitGroup
	limit := make(chan struct{}, leaseCalls*leaseBatch)
	for _, name := range names {
		limit <- struct{}{}
		wg.Go(func() {
			if _, err := c.Sequence(name).take(ctx, 0); err != nil {
				once.Do(func() { first = err })
				cancel()
			}
			<-limit
		})
	}
	wg.Wait()
	return first
}

// Close stops Next, which fails with [ErrClosed] from then on, waits for calls
// under way and gives unused values back, so that a clean restart burns none.
// What is not given back when ctx ends is burned.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	all := maps.Clone(c.all)
	c.mu.Unlock()
	var unused []ReturnRequest
	for _, s := range all {
		unused = append(unused, s.close()...)
	}
	c.returnLeases(ctx, unused)
	err := c.pool.wait(ctx)
	c.end()
	return err
}

// returnLeases returns leases to their servers, a few at a time.
func (c *Client) returnLeases(ctx context.Context, unused []ReturnRequest) {
	for _, r := range unused {
		c.pool.do(func() {
			ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
			defer cancel()
			err := contain(func() error { return c.leaser.Return(ctx, r) })
			if err == nil {
				c.stats.returned.Add(r.Count)
				return
			}
			c.stats.burned.Add(r.Count)
			c.log.Warn("lease not taken back; its values are burned", "sequence", r.Name, "values", r.Count, "error", err)
		})
	}
}

// request puts s in the queue of those to ask for.
func (c *Client) request(s *Sequence) {
	c.mu.Lock()
	c.due = append(c.due, s)
	c.mu.Unlock()
	c.pool.do(c.call)
}

// call asks for leases of as many due sequences as one call takes. Each
// normally goes alone, at once; only when all calls are taken do they gather.
func (c *Client) call() {
	c.mu.Lock()
	n := min(len(c.due), leaseBatch)
	batch := c.due[:n:n]
	c.due = c.due[n:]
	c.mu.Unlock()
	if n == 0 {
		return
	}
	req := LeaseRequest{ClientID: c.id, Items: make([]LeaseItem, n)}
	for i, s := range batch {
		req.Items[i] = s.ask()
	}
	ctx, cancel := context.WithTimeout(c.life, leaseTimeout)
	defer cancel()
	var resp LeaseResponse
	err := contain(func() (err error) { resp, err = c.leaser.Lease(ctx, req); return err })
	if err == nil && len(resp.Results) != n {
		err = &Error{Code: CodeInternal, Message: "the server's answer does not fit the request"}
	}
	c.stats.calls.Add(1)
	if err != nil {
		c.stats.callsFailed.Add(1)
	}
	for i, s := range batch {
		if err != nil {
			s.failed(asError(err))
		} else if resp.Results[i].Err != nil {
			s.failed(resp.Results[i].Err)
		} else {
			s.arrived(resp.Results[i])
		}
	}
}

// ClientStats is a snapshot of what a [Client] has done since it was made.
type ClientStats struct {
	Values      int64 // values handed out
	Blocked     int64 // calls that had to wait for a server
	Calls       int64 // calls for leases
	CallsFailed int64 // of those, without an answer: what the server granted is burned
	Leases      int64 // leases got
	Dropped     int64 // values dropped because the sequence was changed
	Returned    int64 // values given back
	Burned      int64 // values the server would not take back
	Cached      int64 // values in the cache now
}

type clientCounts struct {
	blocked, calls, callsFailed, leases, dropped, returned, burned atomic.Int64
}

// Stats returns a snapshot. Its time grows with the number of sequences used.
func (c *Client) Stats() ClientStats {
	n := &c.stats
	st := ClientStats{
		Blocked: n.blocked.Load(), Calls: n.calls.Load(), CallsFailed: n.callsFailed.Load(), Leases: n.leases.Load(),
		Dropped: n.dropped.Load(), Returned: n.returned.Load(), Burned: n.burned.Load(),
	}
	c.mu.Lock()
	all := maps.Clone(c.all)
	c.mu.Unlock()
	for _, s := range all {
		used, held := s.usage()
		st.Values += used
		st.Cached += held
	}
	return st
}
