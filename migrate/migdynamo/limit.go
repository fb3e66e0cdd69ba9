package migdynamo

import (
	"context"
	"math"

	"golang.org/x/time/rate"
)

// A limiter holds writes to a number of units a second. It lets one second's
// units through at once.
type limiter struct {
	perSecond float64 // of all pods; 0: no limit
	rate      *rate.Limiter
}

func newLimiter(perSecond float64) limiter {
	if perSecond <= 0 {
		return limiter{rate: rate.NewLimiter(rate.Inf, math.MaxInt)}
	}
	return limiter{perSecond, rate.NewLimiter(rate.Limit(perSecond), burst(perSecond))}
}

// setShare makes f of the limit this process's.
func (l limiter) setShare(f float64) {
	if l.perSecond > 0 {
		l.rate.SetLimit(rate.Limit(l.perSecond * f))
		l.rate.SetBurst(burst(l.perSecond * f))
	}
}

func burst(perSecond float64) int { return max(1, int(math.Ceil(perSecond))) }

// wait waits until n units may be used. One item can have more than may be
// used in a second, so it takes them in parts.
func (l limiter) wait(ctx context.Context, n int) error {
	for n > 0 && l.perSecond > 0 {
		part := min(n, l.rate.Burst())
		err := l.rate.WaitN(ctx, part)
		switch {
		case err == nil:
			n -= part
		case over(ctx) != nil:
			return over(ctx)
		case part <= l.rate.Burst(): // it would take longer than ctx has
			return context.DeadlineExceeded
		}
	}
	return nil
}
