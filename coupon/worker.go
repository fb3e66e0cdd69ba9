package coupon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Times of a worker's lease.
const (
	leaseAhead   = 60 * time.Second // from now to the high-water that is written
	leaseRenew   = 15 * time.Second // between renewals
	leaseRetry   = time.Second      // after a failure, and at least between any two calls
	leaseTimeout = 5 * time.Second  // of a call
	maxClockLead = 24 * time.Hour   // of this machine's clock before the database's
	tokensKept   = 256              // of the latest writes: an hour's
)

// A Worker is the lease of a worker number as the control database holds it.
type Worker struct {
	Number    uint8
	Token     string // of the holder's write, at most 32 bytes of ASCII; "": it was given back
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
//
// Two things are beyond that: a database that forgets changes it had confirmed,
// as when a backup takes its place, and a process whose memory is copied. Each
// write of a row has a token of its own, by which its writer knows it again: a
// holder that finds another's makes no more ids at once, at its next look. Until
// then, and of a forgotten stretch for as long as it reaches, an id may come
// twice; it is of the same shard both times, whose table refuses the second.
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
		if row := rowOf(rows, m.lease.Number); m.wrote(row) {
			return m.renew(ctx, row, now)
		}
		m.lose()
	}
	return m.take(ctx, rows, now)
}

// wrote reports whether this process wrote a row of its number, or may have: the
// reply to a renewal may be lost. The row may also be an earlier one, of a
// database that has forgotten the later.
func (m *Minter) wrote(row Worker) bool { return slices.Contains(m.tokens, row.Token) }

// newToken returns the token of a row to be written.
func (m *Minter) newToken() string {
	token := rand.Text()
	m.tokens = append(m.tokens, token)
	m.tokens = m.tokens[max(0, len(m.tokens)-tokensKept):]
	return token
}

// lose ends making ids with the number. Where all is well its high-water has
// passed, so there is nothing left to make; where not, somebody makes the same.
func (m *Minter) lose() {
	m.log.Warn("worker number lost", "number", m.lease.Number, "high_water", m.lease.HighWater)
	m.lease = nil
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = nil
}

// renew moves the high-water on, from wherever the row is.
func (m *Minter) renew(ctx context.Context, row Worker, now clocks) error {
	if row.HighWater < m.lease.HighWater {
		m.log.Error("the control database has forgotten a lease: it may be a backup, and other leases may be lost", "worker", row.Number)
	}
	next := Worker{row.Number, m.newToken(), max(row.HighWater, m.lease.HighWater, now.highWater(m.times.ahead))}
	if err := m.swap(ctx, row, next); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current.high = min(next.HighWater, lastMs)
	m.lease = &next
	return nil
}

// take leases a number.
func (m *Minter) take(ctx context.Context, rows []Worker, now clocks) error {
	old, err := pickWorker(rows, now, m.intN)
	if err != nil {
		return err
	}
	next := Worker{Number: old.Number, Token: m.newToken(), HighWater: now.highWater(m.times.ahead)}
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
	if !m.wrote(row) {
		return nil // another's by now
	}
	return m.swap(ctx, row, Worker{Number: row.Number, HighWater: used})
}
