package coupon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Times of a worker's lease.
const (
	leaseAhead   = 60 * time.Second // from now to the high-water that is written
	leaseRenew   = 15 * time.Second // between renewals
	leaseRetry   = time.Second      // after a failure, and at least between any two calls
	leaseTimeout = 5 * time.Second  // of a call
	maxClockLead = 24 * time.Hour   // of this machine's clock before the database's
)

// A Worker is the lease of a worker number as the control database holds it.
type Worker struct {
	Number    uint8
	Token     string // of the holder, at most 32 bytes of ASCII; "": it was given back
	HighWater int64  // in ms since 1970: no id of the number is of a later one. It never falls below one that was used
}

// Workers keeps the leases of worker numbers, a row a number, which are added as
// they are first leased.
//
// Each change of a row moves the high-water from one value to another. A holder
// makes ids of the ms between those two only, once the change is durable, and
// the change is made only if the row is as it was read. So the stretches of two
// holders never overlap, whatever their clocks show, however long one of them
// stands still and whenever it is killed.
type Workers interface {
	// Workers returns all rows and the database's clock.
	Workers(ctx context.Context) ([]Worker, time.Time, error)

	// SwapWorker makes the row of next.Number next if it equals old in every
	// field, and reports whether it did. If old has no high-water, the row is
	// added if there is none. After an error it may have happened or may yet.
	SwapWorker(ctx context.Context, old, next Worker) (bool, error)
}

// tend does what the lease needs now and returns how long it needs nothing.
func (m *Minter) tend(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, m.times.timeout)
	defer cancel()
	err := m.look(ctx)
	if errors.Is(err, errLost) { // of two that want the same number one has to look again
		err = m.look(ctx)
	}
	m.note(err)
	if err != nil {
		return m.times.retry
	}
	return m.times.renew
}

// note keeps what came of a look and logs where that changed. What the database
// says goes to the log alone: callers of a service may see refusals.
func (m *Minter) note(err error) {
	obstacle := ""
	if o, ok := errors.AsType[obstacleError](err); ok {
		obstacle = string(o)
	} else if err != nil {
		obstacle = "the worker number could not be leased or renewed, for the reason in the log"
	}
	m.mu.Lock()
	before := m.obstacle
	m.obstacle = obstacle
	m.mu.Unlock()
	switch {
	case err == nil && before != "":
		m.log.Info("ids can be made again", "worker", m.lease.Number)
	case err != nil && before == "":
		m.log.Warn("worker number not leased or renewed", "error", err)
	}
}

// An obstacleError is why there is no lease, for callers to read.
type obstacleError string

func (e obstacleError) Error() string { return string(e) }

// look renews the lease, or takes one if there is none or it is another's.
func (m *Minter) look(ctx context.Context) error {
	rows, dbNow, err := m.workers.Workers(ctx)
	if err != nil {
		return fmt.Errorf("read the leases of worker numbers: %w", err)
	}
	now := clocks{own: m.clock().UnixMilli(), db: dbNow.UnixMilli()}
	if now.own > now.db+maxClockLead.Milliseconds() {
		return obstacleError(fmt.Sprintf("this machine's clock is %v ahead of the control database's: set it right",
			time.Duration(now.own-now.db)*time.Millisecond))
	}
	if m.lease != nil {
		if row := rowOf(rows, m.lease.Number); row.Token == m.lease.Token {
			return m.renew(ctx, row, now)
		}
		m.log.Warn("worker number lost", "number", m.lease.Number)
		m.lease = nil
	}
	return m.take(ctx, rows, now)
}

// renew moves the high-water on. The row may be beyond what is known here: by a
// renewal whose reply was lost, which is as good as any other.
func (m *Minter) renew(ctx context.Context, row Worker, now clocks) error {
	next := row
	next.HighWater = max(row.HighWater, m.lease.HighWater, now.highWater(m.times.ahead))
	if err := m.swap(ctx, row, next); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current.high = min(next.HighWater, lastMs)
	m.lease = &next
	return nil
}

// take leases a number. The generator of a lost lease stays until then: what it
// has up to its high-water is its own.
func (m *Minter) take(ctx context.Context, rows []Worker, now clocks) error {
	old, err := pickWorker(rows, now, m.intN)
	if err != nil {
		return err
	}
	next := Worker{Number: old.Number, Token: rand.Text(), HighWater: now.highWater(m.times.ahead)}
	if err := m.swap(ctx, old, next); err != nil {
		return err
	}
	m.mu.Lock()
	m.current = newGenerator(next.Number, old.HighWater, next.HighWater)
	m.mu.Unlock()
	m.lease = &next
	m.log.Info("worker number leased", "number", next.Number)
	return nil
}

// swap changes a row, or returns errLost if it is not old any more.
func (m *Minter) swap(ctx context.Context, old, next Worker) error {
	won, err := m.workers.SwapWorker(ctx, old, next)
	if err == nil && !won {
		err = errLost
	}
	if err != nil {
		return fmt.Errorf("write the lease of worker number %d: %w", old.Number, err)
	}
	return nil
}

// giveBack lowers the high-water to the last ms used.
func (m *Minter) giveBack(ctx context.Context, used int64) error {
	rows, _, err := m.workers.Workers(ctx)
	if err != nil {
		return err
	}
	row := rowOf(rows, m.lease.Number)
	if row.Token != m.lease.Token {
		return nil // another's by now
	}
	return m.swap(ctx, row, Worker{Number: row.Number, HighWater: used})
}
