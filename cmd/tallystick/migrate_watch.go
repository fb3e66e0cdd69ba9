package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// redraw is how often the line on a terminal is drawn.
const redraw = 500 * time.Millisecond

// watch shows how far the migration has come until ctx ends, and then once
// more.
func (c *cli) watch(ctx context.Context, j *job, s *screen, interval time.Duration) {
	if s.live {
		interval = redraw
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var pace pace
	for {
		select {
		case <-tick.C:
			c.show(ctx, j, s, &pace)
		case <-ctx.Done():
			last, cancel := lastWords(ctx)
			defer cancel()
			c.show(last, j, s, &pace)
			s.end()
			return
		}
	}
}

// A progressView is the line of JSON that a pod prints.
type progressView struct {
	At   time.Time `json:"at"`
	Name string    `json:"name"`
	Rate float64   `json:"rows_per_second"`
	statusView
}

// show shows the present status. One that cannot be read is no failure of the
// pod, which logs it.
func (c *cli) show(ctx context.Context, j *job, s *screen, p *pace) {
	r, err := j.local.Status(ctx)
	if err != nil {
		return
	}
	now := time.Now()
	rate := p.rate(now, r.Rows.Read)
	if s.live {
		s.draw(liveLine(j.plan, r, rate))
		return
	}
	_ = c.printJSON(progressView{At: now.UTC(), Name: j.plan.Name, Rate: rate, statusView: viewReport(r)}) // whoever read it has gone
}

// liveLine returns the status in one line.
func liveLine(plan migrate.Plan, r migrate.Report, rate float64) string {
	done := 0.0
	if r.Slots.Total > 0 {
		done = 100 * float64(r.Slots.Finished) / float64(r.Slots.Total)
	}
	parts := []string{
		fmt.Sprintf("%s %s", plan.Name, viewReport(r).Status),
		fmt.Sprintf("slots %d/%d %.1f %%", r.Slots.Finished, r.Slots.Total, done),
		fmt.Sprintf("rows %d, %.0f/s", r.Rows.Read, rate),
		"left " + spanText(r.ETA),
		fmt.Sprintf("workers %d", len(r.Workers)),
		fmt.Sprintf("quarantined %d", r.Rows.Quarantined),
	}
	if r.Phase != "" && r.Phase != migrate.PhaseCopy {
		parts[0] += " " + string(r.Phase)
	}
	return strings.Join(parts, " | ")
}

// paceOver is over how long a rate is an average.
const paceOver = 10 * time.Second

// A pace tells how fast a count grows.
type pace struct{ seen []count }

type count struct {
	at time.Time
	n  int64
}

// rate returns how much n grew a second of late. The newest count that is older
// than paceOver stays, so that the average is over at least that long.
func (p *pace) rate(now time.Time, n int64) float64 {
	p.seen = append(p.seen, count{now, n})
	for len(p.seen) > 2 && now.Sub(p.seen[1].at) >= paceOver {
		p.seen = p.seen[1:]
	}
	first := p.seen[0]
	spent := now.Sub(first.at).Seconds()
	if spent <= 0 || n < first.n {
		return 0
	}
	return float64(n-first.n) / spent
}
