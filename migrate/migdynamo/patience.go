package migdynamo

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	throttleTries = 8                      // beyond the delays of the plan
	throttleMost  = 5 * time.Second        // between two of them
	throttleDelay = 100 * time.Millisecond // where the plan has no delays
)

// A patience knows how often one request may fail, and how long to wait each
// time. Failures may come as often as the plan has delays. Throttling, which
// ends by waiting, may go on for some eight longer ones.
type patience struct {
	delays    []time.Duration
	failures  int
	throttles int
}

// next returns the most to wait after another failure, and false once patience
// has ended.
func (p *patience) next(throttled bool) (time.Duration, bool) {
	n := &p.failures
	if throttled {
		n = &p.throttles
	}
	*n++
	switch known := len(p.delays); {
	case *n <= known:
		return p.delays[*n-1], true
	case !throttled || *n > known+throttleTries:
		return 0, false
	case known == 0:
		return min(throttleDelay<<(*n-1), throttleMost), true
	default:
		return min(p.delays[known-1]<<(*n-known), throttleMost), true
	}
}

// progress begins anew: something was done.
func (p *patience) progress() { p.failures, p.throttles = 0, 0 }

// wait waits a random time up to what next says. It returns false once
// patience or ctx has ended.
func (p *patience) wait(ctx context.Context, throttled bool) bool {
	most, ok := p.next(throttled)
	if !ok {
		return false
	}
	timer := time.NewTimer(rand.N(most + 1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return over(ctx) == nil
	case <-ctx.Done():
		return false
	}
}
