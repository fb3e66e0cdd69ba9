package migrate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A sharer is a sink that takes a part of the plan's limit of write units.
type sharer interface{ SetShare(part float64) }

// newReadLimit returns what holds reading to the plan's rows a second, nil if
// there is no limit.
func (p Plan) newReadLimit() *rate.Limiter {
	if p.Limits.ReadRows == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(p.Limits.ReadRows), p.PageRows)
}

// share gives this pod its part of the limits: they hold for all pods together,
// and those that hold slots share them evenly.
func (m *Migration) share(v View) {
	pods := map[string]bool{m.pod: true}
	for _, h := range v.Live {
		pods[h.Worker] = true
	}
	part := 1 / float64(len(pods))
	if m.reading != nil {
		m.reading.SetLimit(rate.Limit(m.plan.Limits.ReadRows * part))
	}
	if s, ok := m.sink.(sharer); ok {
		s.SetShare(part)
	}
}

// pace waits until n more rows may be read.
func (m *Migration) pace(ctx context.Context, n int) error {
	if err := m.spareReplicas(ctx); err != nil || m.reading == nil || n == 0 {
		return err
	}
	if err := m.reading.WaitN(ctx, min(n, m.plan.PageRows)); err != nil {
		return fmt.Errorf("keep to read_rows_per_second: %w", err)
	}
	return nil
}

// lagInterval is how long a look at the replicas is good for.
const lagInterval = 2 * time.Second

// A lagWatch is the last look at the source's replicas, which all workers of a
// pod share.
type lagWatch struct {
	mu     sync.Mutex // held during a look
	looked time.Time
	behind bool
}

// spareReplicas waits while a replica of the source is further behind than the
// plan allows: the source is busy enough.
func (m *Migration) spareReplicas(ctx context.Context) error {
	gauge, ok := m.source.(Gauge)
	for limit := time.Duration(m.plan.Limits.ReplicaLag); ok && limit > 0; {
		behind, err := m.lag.look(ctx, gauge, limit)
		if err != nil || !behind {
			return err
		}
		if err := sleep(ctx, lagInterval); err != nil {
			return err
		}
	}
	return nil
}

func (l *lagWatch) look(ctx context.Context, gauge Gauge, limit time.Duration) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.looked) < lagInterval {
		return l.behind, nil
	}
	lag, err := gauge.Lag(ctx)
	if err != nil {
		return false, err
	}
	l.looked, l.behind = time.Now(), lag > limit
	return l.behind, nil
}
