package coupon

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// How a relay works.
const (
	relayBatch   = 200                    // rows read, published and removed at a time
	relayAtOnce  = 4                      // shards whose rows are being published
	relayGather  = 10 * time.Millisecond  // after a wake-up, so that rows come together
	relayPoll    = 2 * time.Second        // of a shard that nobody woke
	relayLease   = 10 * time.Second       // of the database's clock
	relayMargin  = 6 * time.Second        // before its end a lease is renewed: more than relayTimeout
	relayFirst   = 200 * time.Millisecond // back-off after a failure, twice as long each time
	relayLast    = 10 * time.Second
	relayTimeout = 5 * time.Second // of publishing a batch
	relayCounted = 10_000          // rows that are counted, at most
)

// A Relay publishes what the outboxes of all shards hold. Any number of processes
// may run one; a lease in each shard's own database lets one of them work on it.
//
// For each shard it reads the oldest committed rows, publishes them, waits until
// the queue has them on disk, and removes those it has. If the process dies
//
//	before publishing:     the rows are there, for whoever takes the lease next
//	while publishing:      likewise; some are in the queue and come again
//	before they are gone:  likewise: all are published twice
//	after that:            everything happened
//
// A message that comes twice has the same name both times, by which the queue
// drops it for a while, and the same version, by which readers do for ever. None
// is lost: a row goes only after the queue has its message.
//
// A row that the queue refuses stays, with no harm to others, until it takes it.
type Relay struct {
	outbox Outbox
	queue  Publisher
	log    *slog.Logger
	token  string
	atOnce chan struct{} // full while relayAtOnce shards have rows being published
	shards [shard.Count]relayShard
}

// A relayShard is what a relay knows of a shard.
type relayShard struct {
	wake chan struct{} // has room for one

	mu    sync.Mutex
	stats RelayStats
}

// RelayStats tell how far a relay is with a shard. Counts are of this process.
type RelayStats struct {
	Shard     shard.Shard
	Waiting   int           // rows, as of the last look; counted up to 10,000
	Age       time.Duration // of the event of the oldest row then; 0: none waits
	Leased    bool          // this process has the lease, or had it last
	Published int64         // rows that went
	Failed    int64         // turns that ended with an error
	Lost      int64         // turns after which another process had the lease
}

// NewRelay returns a relay that works only while [Relay.Run] runs. A nil logger
// is silent.
func NewRelay(outbox Outbox, queue Publisher, log *slog.Logger) *Relay {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Relay{outbox: outbox, queue: queue, log: log, token: rand.Text(), atOnce: make(chan struct{}, relayAtOnce)}
	for at := range r.shards {
		r.shards[at].wake = make(chan struct{}, 1)
		r.shards[at].stats.Shard = shard.Shard(at)
	}
	return r
}

// Wake tells that a shard may have something to publish. It never waits. Without
// it a message waits for the next poll, up to 2 s.
func (r *Relay) Wake(at shard.Shard) {
	select {
	case r.shards[at].wake <- struct{}{}:
	default: // it is going to look
	}
}

// Stats returns how far each shard is. It asks no database.
func (r *Relay) Stats() []RelayStats {
	all := make([]RelayStats, shard.Count)
	for at := range r.shards {
		s := &r.shards[at]
		s.mu.Lock()
		all[at] = s.stats
		s.mu.Unlock()
	}
	return all
}

// Run relays until ctx ends, and finishes no batch after that. It returns nil.
func (r *Relay) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for _, at := range shard.All() {
		loops.Go(func() { r.relay(ctx, at) })
	}
	loops.Wait()
	return nil
}

// relay is the loop of a shard.
func (r *Relay) relay(ctx context.Context, at shard.Shard) {
	held := new(heldLease)
	var pause time.Duration
	for ctx.Err() == nil {
		more, err := r.turn(ctx, at, held)
		pause = r.note(ctx, at, err, pause)
		switch {
		case err != nil:
			wait(ctx, pause)
		case !more:
			r.await(ctx, at)
		}
	}
}

// note counts a failure, logs the first of a row of them and returns how long to
// wait after it.
func (r *Relay) note(ctx context.Context, at shard.Shard, err error, before time.Duration) time.Duration {
	if err == nil {
		if before > 0 {
			r.log.Info("events are published again", "shard", at)
		}
		return 0
	}
	if ctx.Err() == nil && before == 0 {
		r.log.Warn("events are not published", "shard", at, "error", err)
	}
	r.update(at, func(s *RelayStats) { s.Failed++ })
	return backOff(before, relayFirst, relayLast)
}

// backOff returns the pause after one that was before.
func backOff(before, first, last time.Duration) time.Duration {
	return min(max(first, 2*before), last)
}

// await waits until something may be there to do.
func (r *Relay) await(ctx context.Context, at shard.Shard) {
	poll := time.NewTimer(relayPoll)
	defer poll.Stop()
	select {
	case <-ctx.Done():
	case <-poll.C:
	case <-r.shards[at].wake:
		wait(ctx, relayGather)
	}
}

func (r *Relay) update(at shard.Shard, change func(*RelayStats)) {
	s := &r.shards[at]
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}
