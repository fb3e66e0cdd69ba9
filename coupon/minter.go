package coupon

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// MinterOptions configures [OpenMinter].
type MinterOptions struct {
	Logger *slog.Logger // leases taken and lost; nil: silent
}

// A Minter makes ids, with a worker number that it leases and renews in the
// background. It is safe for concurrent use. Its ids rise in time but for those
// of one bucket at more than 16 a ms, which run ahead of the clock, by a minute at
// most.
//
// While the control database is away ids are made for up to a minute more. Then,
// and if all numbers are leased, [Minter.Mint] refuses with [ErrNoIDs] until that
// has changed. A number whose process was killed is free after a minute.
type Minter struct {
	workers Workers
	log     *slog.Logger
	times   leaseTimes

	clock      func() time.Time // time.Now but in tests
	afterClock func()           // for tests; may be nil
	intN       func(int) int    // chooses among numbers that are free

	mu       sync.Mutex
	current  *generator // nil: none yet, lost or closed
	obstacle string     // why the last look at the lease failed; "": it did not

	lease  *Worker  // the row as it was last known; nil: there is no lease. Of the keeper alone
	tokens []string // of rows that this process wrote, or may have; likewise
	nudge  chan struct{}
	stop   context.CancelFunc
	done   chan struct{}
}

// leaseTimes are the times of the lease, which tests shorten.
type leaseTimes struct{ ahead, renew, retry, timeout time.Duration }

// OpenMinter leases a worker number and returns once it has one or the first
// attempt has failed, which is then repeated in the background. ctx ends that
// attempt; [Minter.Close] ends the rest.
func OpenMinter(ctx context.Context, workers Workers, opts MinterOptions) *Minter {
	m := newMinter(workers, opts)
	m.open(ctx)
	return m
}

func newMinter(workers Workers, opts MinterOptions) *Minter {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Minter{
		workers: workers, log: opts.Logger, clock: time.Now, intN: rand.IntN,
		times: leaseTimes{leaseAhead, leaseRenew, leaseRetry, leaseTimeout},
		nudge: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

func (m *Minter) open(ctx context.Context) {
	wait := m.tend(ctx)
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	go m.keep(life, wait)
}

// keep looks after the lease until ctx ends.
func (m *Minter) keep(ctx context.Context, wait time.Duration) {
	defer close(m.done)
	for {
		select { // a nudge does not come sooner than this
		case <-ctx.Done():
			return
		case <-time.After(m.times.retry):
		}
		select {
		case <-ctx.Done():
			return
		case <-m.nudge:
		case <-time.After(wait - m.times.retry):
		}
		wait = m.tend(ctx)
	}
}

// Mint returns a new id of a bucket. While there is none to be had it refuses
// with [ErrNoIDs], at once.
func (m *Minter) Mint(b shard.Bucket) (ID, error) {
	now := m.clock().UnixMilli()
	if m.afterClock != nil {
		m.afterClock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current != nil {
		if id, ok := m.current.mint(b, now); ok {
			return id, nil
		}
	}
	return 0, m.refuse()
}

// refuse returns why there is no id and has the lease looked after. Requires m.mu.
func (m *Minter) refuse() error {
	select {
	case m.nudge <- struct{}{}:
	default: // it was asked for already
	}
	switch {
	case m.obstacle != "":
		return fmt.Errorf("%w: %s", ErrNoIDs, m.obstacle)
	case m.current == nil:
		return fmt.Errorf("%w: the process has lost its worker number, or is ending", ErrNoIDs)
	}
	return fmt.Errorf("%w: the lease of worker number %d is being renewed", ErrNoIDs, m.current.worker)
}

// Close ends making ids and gives the number back, so that another process may
// have it at once. If that fails or ctx ends, the number is free after a minute.
func (m *Minter) Close(ctx context.Context) error {
	m.stop()
	<-m.done
	m.mu.Lock()
	ended := m.current
	m.current, m.obstacle = nil, ""
	m.mu.Unlock()
	if ended == nil || m.lease == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.times.timeout)
	defer cancel()
	if err := m.giveBack(ctx, ended.used); err != nil {
		return fmt.Errorf("coupon: give worker number %d back: %w", ended.worker, err)
	}
	return nil
}
