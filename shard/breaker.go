package shard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// When a breaker takes a database for gone, and how it finds out that it is back.
const (
	breakAfter = 5                      // calls in a row without an answer
	breakProbe = time.Second            // between two calls that are let through
	breakFair  = 500 * time.Millisecond // a call that was given less says nothing
)

// A Breaker is a [Database] that does not let callers wait for one that is gone.
// After 5 calls in a row that the database has not answered, others are refused
// with [ErrUnavailable] at once, but for one a second; the first that is answered
// ends it. So a database that hangs costs its callers a moment, and not all that
// they share with callers of others: connections, loops that go from shard to
// shard, places of a queue's reader. It is safe for concurrent use.
type Breaker struct {
	Database
	changed func(open bool, why error)

	mu    sync.Mutex
	state breakerState
}

// NewBreaker returns a breaker for db. changed is told when callers begin to be
// refused, and why, and when they no longer are; nil: nobody is. It is called
// under a lock and must not call db.
func NewBreaker(db Database, changed func(open bool, why error)) *Breaker {
	if changed == nil {
		changed = func(bool, error) {}
	}
	return &Breaker{Database: db, changed: changed}
}

// Write is that of the database, unless it is gone.
func (b *Breaker) Write(ctx context.Context, fn func(Conn) error) error {
	return b.call(ctx, func() error { return b.Database.Write(ctx, fn) })
}

// Read is that of the database, unless it is gone.
func (b *Breaker) Read(ctx context.Context, fn func(Conn) error) error {
	return b.call(ctx, func() error { return b.Database.Read(ctx, fn) })
}

func (b *Breaker) call(ctx context.Context, do func() error) error {
	began := time.Now()
	if err := b.admit(began); err != nil {
		return err
	}
	err := do()
	b.note(outcomeOf(ctx, err, time.Since(began)), err)
	return err
}

func (b *Breaker) admit(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state.admit(now) {
		return nil
	}
	return fmt.Errorf("%w: it has not answered the last %d calls; one a second is let through until it does", ErrUnavailable, b.state.silent)
}

func (b *Breaker) note(o answered, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.state.open()
	b.state.note(o, time.Now())
	if after := b.state.open(); after != before {
		b.changed(after, err)
	}
}

// answered tells what a call says about its database.
type answered int

const (
	answeredNothing answered = iota // the caller went away, or had no time
	answeredYes
	answeredNo
)

// outcomeOf tells what a call that ended with err after that long says. A database
// that refuses, a statement or a lock, does answer.
func outcomeOf(ctx context.Context, err error, took time.Duration) answered {
	switch {
	case !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnknown):
		return answeredYes
	case ctx.Err() == nil:
		return answeredNo
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && took >= breakFair:
		return answeredNo
	}
	return answeredNothing
}

// A breakerState is what a breaker knows of its database. The zero value knows
// nothing bad.
type breakerState struct {
	silent int       // calls in a row that were not answered
	probe  time.Time // when the next call is let through, while open
}

func (s *breakerState) open() bool { return s.silent >= breakAfter }

// admit reports whether a call is let through.
func (s *breakerState) admit(now time.Time) bool {
	if !s.open() {
		return true
	}
	if now.Before(s.probe) {
		return false
	}
	s.probe = now.Add(breakProbe)
	return true
}

// note takes what a call came to.
func (s *breakerState) note(o answered, now time.Time) {
	switch o {
	case answeredYes:
		s.silent = 0
	case answeredNo:
		s.silent++
		if s.silent == breakAfter {
			s.probe = now.Add(breakProbe)
		}
	}
}
