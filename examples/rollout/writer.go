package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/rollout"
)

// The variables by which this program starts itself as a writer.
const writerEnv = "ROLLOUT_EXAMPLE_PHASE"

// write inserts, changes, deletes and reads events until the process is killed.
func write(ctx context.Context, s *sides, phase rollout.Phase) error {
	store := s.store(phase, nil)
	for {
		k := event(rand.IntN(events))
		var err error
		switch rand.IntN(4) {
		case 0:
			err = store.Delete(ctx, k)
		case 1:
			_, _, err = store.Get(ctx, k)
		default:
			err = store.Put(ctx, k, fmt.Sprintf(`{"text": "message %d", "big": 9007199254740993}`, rand.Uint64()))
		}
		if err != nil {
			return err
		}
	}
}

// A crew is writers in processes of their own, each of which is killed again
// and again, wherever it is, and started anew.
type crew struct {
	stop   context.CancelFunc
	over   <-chan struct{} // closed by stop
	done   sync.WaitGroup
	deaths chan struct{}
	failed atomic.Pointer[error]
}

// startCrew starts writers in a phase.
func startCrew(ctx context.Context, phase rollout.Phase, size int, stderr io.Writer) *crew {
	ctx, stop := context.WithCancel(ctx)
	c := &crew{stop: stop, over: ctx.Done(), deaths: make(chan struct{})}
	for range size {
		c.done.Go(func() {
			for ctx.Err() == nil {
				if err := live(ctx, phase, stderr); err != nil {
					c.failed.Store(&err)
				}
				select {
				case c.deaths <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	return c
}

// live runs one writer until it is killed, 0.3 to 0.8 s later.
func live(ctx context.Context, phase rollout.Phase, stderr io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond+rand.N(500*time.Millisecond))
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program) // its end is kill -9
	cmd.Env, cmd.Stderr = append(os.Environ(), writerEnv+"="+phase.String()), stderr
	if err := cmd.Run(); ctx.Err() == nil {
		return fmt.Errorf("a writer ended by itself: %w", err)
	}
	return nil
}

// await returns after a number of deaths.
func (c *crew) await(deaths int) error {
	for range deaths {
		select {
		case <-c.deaths:
		case <-c.over:
			return context.Canceled
		}
		if err := c.failed.Load(); err != nil {
			return *err
		}
	}
	return nil
}

// end kills all writers, for good.
func (c *crew) end() {
	c.stop()
	c.done.Wait()
}
