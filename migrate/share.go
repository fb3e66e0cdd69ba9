package migrate

import (
	"context"
	"fmt"

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
	if m.reading == nil || n == 0 {
		return nil
	}
	if err := m.reading.WaitN(ctx, min(n, m.plan.PageRows)); err != nil {
		return fmt.Errorf("keep to read_rows_per_second: %w", err)
	}
	return nil
}
