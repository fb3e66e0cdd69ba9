package migtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// A SourceOp names a method of a source.
type SourceOp string

// The methods.
const (
	SourcePage    SourceOp = "page"
	SourceNearest SourceOp = "nearest"
	SourceGet     SourceOp = "get"
	SourceSplit   SourceOp = "split"
	SourceNow     SourceOp = "now"
	SourceExtent  SourceOp = "extent"
	SourceSettled SourceOp = "settled"
	SourceAwait   SourceOp = "await"
	SourcePending SourceOp = "pending"
	SourceClear   SourceOp = "clear"
	SourceLag     SourceOp = "lag"
)

// sourceKnobs are what a test turns and reads.
type sourceKnobs struct {
	knobs    sync.Mutex
	delay    time.Duration
	lag      time.Duration
	before   func(context.Context, SourceOp) error
	calls    map[SourceOp]int
	rowsRead int
}

// SetDelay makes every call take d.
func (k *sourceKnobs) SetDelay(d time.Duration) {
	k.knobs.Lock()
	defer k.knobs.Unlock()
	k.delay = d
}

// SetLag sets what [Source.Lag] returns.
func (k *sourceKnobs) SetLag(d time.Duration) {
	k.knobs.Lock()
	defer k.knobs.Unlock()
	k.lag = d
}

// Before has f called at the beginning of each call, which fails with its
// error; f may wait, or change the table. nil removes it.
func (k *sourceKnobs) Before(f func(context.Context, SourceOp) error) {
	k.knobs.Lock()
	defer k.knobs.Unlock()
	k.before = f
}

// Calls returns how often a method was called, failed calls included.
func (k *sourceKnobs) Calls(op SourceOp) int {
	k.knobs.Lock()
	defer k.knobs.Unlock()
	return k.calls[op]
}

// RowsRead returns how many rows pages have brought.
func (k *sourceKnobs) RowsRead() int {
	k.knobs.Lock()
	defer k.knobs.Unlock()
	return k.rowsRead
}

// enter is the beginning of a call.
func (k *sourceKnobs) enter(ctx context.Context, op SourceOp) error {
	delay, before := k.note(op)
	if before != nil {
		if err := before(ctx, op); err != nil {
			return fmt.Errorf("migtest: %s: %w", op, err)
		}
	}
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("migtest: %s: %w", op, context.Cause(ctx))
	}
	return nil
}

func (k *sourceKnobs) note(op SourceOp) (time.Duration, func(context.Context, SourceOp) error) {
	k.knobs.Lock()
	defer k.knobs.Unlock()
	if k.calls == nil {
		k.calls = map[SourceOp]int{}
	}
	k.calls[op]++
	return k.delay, k.before
}

func (k *sourceKnobs) read(p migrate.Page) migrate.Page {
	k.knobs.Lock()
	defer k.knobs.Unlock()
	k.rowsRead += len(p.Rows)
	return p
}

// Lag implements [migrate.Gauge].
func (s *Source) Lag(ctx context.Context) (time.Duration, error) {
	if err := s.enter(ctx, SourceLag); err != nil {
		return 0, err
	}
	s.knobs.Lock()
	defer s.knobs.Unlock()
	return s.lag, nil
}
