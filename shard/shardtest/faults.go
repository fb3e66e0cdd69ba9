package shardtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// deadline is how long the calls of these tests may take, and slack what the
// machine may take beyond it.
const (
	deadline = 500 * time.Millisecond
	slack    = 5 * time.Second
)

// fails checks that a write and a read end with ErrUnavailable, and in time.
func (c client) fails(t *testing.T) {
	t.Helper()
	for name, call := range map[string]func(context.Context) error{
		"write": func(ctx context.Context) error {
			return c.Write(ctx, seven, func(tx *shard.Tx) error {
				_, err := tx.Exec(add, 5, 1)
				return err
			})
		},
		"read": func(ctx context.Context) error {
			return c.Read(ctx, seven, func(r *shard.Reader) error { return r.QueryRow(get, 1).Scan(new(int)) })
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		start := time.Now()
		err := call(ctx)
		cancel()
		if !errors.Is(err, shard.ErrUnavailable) || time.Since(start) > deadline+slack {
			t.Errorf("%s: %v after %v, want ErrUnavailable", name, err, time.Since(start))
		}
	}
}

func testUnreachable(t *testing.T, s Subject) {
	if s.Net == nil {
		return
	}
	c := prepare(t, s)
	far := connect(t, s.Through(t))
	far.holds(t, 1, 0)
	s.Net.Cut()
	far.fails(t)
	s.Net.Restore()
	far.holds(t, 1, 0)
	c.holds(t, 1, 0)
}

func testSilent(t *testing.T, s Subject) {
	if s.Net == nil {
		return
	}
	c := prepare(t, s)
	far := connect(t, s.Through(t))
	far.holds(t, 1, 0)
	s.Net.Stall()
	for range 3 {
		far.fails(t)
	}
	s.Net.Cut() // what was held back is lost
	s.Net.Restore()
	far.insert(t, 2, 1) // the pool is not poisoned
	c.holds(t, 1, 0)
}

// commit runs a write through the net, if queue is true one whose last statement
// may wait for COMMIT. disturb makes the net bad before COMMIT is sent. Once arrived returns, the connection is cut.
func commit(t *testing.T, s Subject, queue bool, disturb, arrived func()) error {
	t.Helper()
	far := connect(t, s.Through(t))
	done := make(chan error, 1)
	go func() {
		done <- far.Write(t.Context(), seven, func(tx *shard.Tx) error {
			_, err := tx.Exec(add, 5, 1)
			if err == nil && queue {
				err = tx.Queue(insert, 2, 2)
			}
			disturb()
			return err
		})
	}()
	arrived()
	s.Net.Cut()
	return <-done
}

func testReplyLost(queue bool) func(*testing.T, Subject) {
	return func(t *testing.T, s Subject) {
		if s.Net == nil {
			return
		}
		c := prepare(t, s)
		err := commit(t, s, queue, func() { s.Net.Delay(time.Hour) }, func() {
			for until := time.Now().Add(slack); c.value(t, 1) == 0 && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
		})
		if !errors.Is(err, shard.ErrUnknown) {
			t.Errorf("%v, want ErrUnknown", err)
		}
		c.holds(t, 1, 5)
	}
}

func testCommitLost(queue bool) func(*testing.T, Subject) {
	return func(t *testing.T, s Subject) {
		if s.Net == nil {
			return
		}
		c, stalled := prepare(t, s), make(chan struct{})
		err := commit(t, s, queue, func() { s.Net.Stall(); close(stalled) }, func() {
			<-stalled
			time.Sleep(50 * time.Millisecond) // for COMMIT to be sent; if it is not, nothing changes below
		})
		if !errors.Is(err, shard.ErrUnknown) && !errors.Is(err, shard.ErrUnavailable) {
			t.Errorf("%v, want ErrUnknown", err)
		}
		c.holds(t, 1, 0)
	}
}

func testEnded(t *testing.T, s Subject) {
	c := prepare(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.Write(ctx, seven, func(tx *shard.Tx) error {
		_, err := tx.Exec(add, 5, 1)
		return err
	})
	if !errors.Is(err, shard.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("writing: %v, want ErrUnavailable", err)
	}
	err = c.Read(ctx, seven, func(r *shard.Reader) error { return r.QueryRow(get, 1).Scan(new(int)) })
	if !errors.Is(err, shard.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("reading: %v, want ErrUnavailable", err)
	}
	c.holds(t, 1, 0)
}

func testEndsInFunction(t *testing.T, s Subject) {
	c := prepare(t, s)
	for name, then := range map[string]func(*shard.Tx) error{
		"and it goes on": func(tx *shard.Tx) error {
			_, err := tx.Exec(add, 5, 1)
			return err
		},
		"and it reads on": func(tx *shard.Tx) error { return tx.QueryRow(get, 1).Scan(new(int)) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Write(ctx, seven, func(tx *shard.Tx) error {
			if _, err := tx.Exec(add, 5, 1); err != nil {
				return err
			}
			cancel()
			return then(tx)
		})
		if !errors.Is(err, shard.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
	c.holds(t, 1, 0)
	c.insert(t, 2, 1)
}
