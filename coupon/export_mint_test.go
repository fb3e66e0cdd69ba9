package coupon

import (
	"context"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// IDParts are the parts of an id.
type IDParts struct {
	Ms       int64 // since 1970
	Worker   uint8
	Sequence int
	Bucket   shard.Bucket
}

// PartsOf takes an id apart, by arithmetic that is not mint.go's.
func PartsOf(id ID) IDParts {
	return IDParts{
		Ms:       int64(id)/(1<<22) + time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(),
		Worker:   uint8(int64(id) / (1 << 14) % 256),
		Sequence: int(int64(id) / 1024 % 16),
		Bucket:   shard.Bucket(int64(id) % 1024),
	}
}

// A MinterSetup is what tests change of a Minter. Zero fields change nothing.
type MinterSetup struct {
	Clock        func() time.Time
	AfterClock   func()        // between the clock's reading and the id
	IntN         func(int) int // chooses among numbers that are free
	Ahead, Renew time.Duration
}

// NewMinterByHand returns a minter that has no lease and nothing that looks after
// it: Tend does.
func NewMinterByHand(workers Workers, setup MinterSetup) *Minter {
	m := newMinter(workers, MinterOptions{})
	setup.apply(m)
	return m
}

// OpenMinterSetup is OpenMinter with a setup.
func OpenMinterSetup(ctx context.Context, workers Workers, opts MinterOptions, setup MinterSetup) *Minter {
	m := newMinter(workers, opts)
	setup.apply(m)
	m.open(ctx)
	return m
}

func (s MinterSetup) apply(m *Minter) {
	if s.Clock != nil {
		m.clock = s.Clock
	}
	m.afterClock = s.AfterClock
	if s.IntN != nil {
		m.intN = s.IntN
	}
	if s.Ahead != 0 {
		m.times = leaseTimes{s.Ahead, s.Renew, s.Renew / 5, leaseTimeout}
	}
}

// Tend looks after the lease of a minter made by hand, once.
func (m *Minter) Tend(ctx context.Context) { m.tend(ctx) }

// End is Close of a minter made by hand.
func (m *Minter) End(ctx context.Context) error {
	m.stop = func() {}
	close(m.done)
	return m.Close(ctx)
}

// LeasedNumber returns the number of a minter that Tend is not busy with, and
// false if it has none.
func (m *Minter) LeasedNumber() (uint8, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil {
		return 0, false
	}
	return m.current.worker, true
}

// IgnoreHighWater plants a fault.
func (m *Minter) IgnoreHighWater() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current != nil {
		m.current.high = lastMs
	}
}
