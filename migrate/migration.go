package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
)

// Options configures a [Migration].
type Options struct {
	Mapping Mapping      // nil: the plan's columns
	Pod     string       // names this process to people; "": random
	Logger  *slog.Logger // changes of state; nil: silent
}

// pageBytes bounds the rows of a page in memory. A worker holds two pages at the
// most.
const pageBytes = 2 << 20

// Memory returns what a pod of the plan should use at the most, in bytes: the
// pages of its workers, and 32 MiB for all else. Rows that are much larger once
// they are decoded need more.
func (p Plan) Memory() int64 { return int64(p.Workers)*2*pageBytes + 32<<20 }

// A Migration is one pod's view of a migration. Any number of pods work on
// one; they know of each other through the [State] only.
type Migration struct {
	plan    Plan
	axis    Axis
	source  Source
	sink    Sink
	state   State
	mapping Mapping
	pod     string
	keeper  string // names this process among those that want to be the Keeper
	log     *slog.Logger
	turn    chan struct{} // held by the worker that looks for a slot
	reading *rate.Limiter // nil: no limit
	lag     lagWatch
	writes  writes
	awaited awaited // by the Keeper, which only one goroutine is
}

// New returns a migration by plan. It does no I/O. source and sink may be nil
// for a process that only looks at or changes the status.
func New(plan Plan, source Source, sink Sink, state State, opts Options) *Migration {
	m := &Migration{
		plan: plan, axis: plan.Axis(), source: source, sink: sink, state: state,
		mapping: opts.Mapping, pod: opts.Pod, log: opts.Logger,
		turn: make(chan struct{}, 1), reading: plan.newReadLimit(),
	}
	if m.mapping == nil {
		m.mapping = plan.mapping()
	}
	if m.pod == "" {
		m.pod = newToken()[:8]
	}
	m.keeper = m.pod + "/" + newToken()[:8] // no two are the same, whatever they are called
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	return m
}

// mapping returns the mapping that the plan's columns describe: those it names
// may get another name and form, the others stay as they are.
func (p Plan) mapping() Mapping {
	if len(p.Columns) == 0 {
		return func(r Row) (Row, error) { return r, nil }
	}
	return func(r Row) (Row, error) {
		fields := make([]Field, len(r.Fields))
		for i, f := range r.Fields {
			fields[i] = f
			if c, ok := p.Columns[f.Name]; ok {
				fields[i].Map = c.Encode == "map"
				if c.As != "" {
					fields[i].Name = c.As
				}
			}
		}
		r.Fields = fields
		return r, nil
	}
}

// Open registers this pod with the state and returns the plan as the first pod
// wrote it. Which slots there are the Keeper writes at the first start, and that
// does not change afterwards, whatever is added to the table. Before, the record
// has those of now, which are written nowhere.
func (m *Migration) Open(ctx context.Context) (PlanRecord, error) {
	v, err := m.state.View(ctx)
	if err != nil {
		return PlanRecord{}, err
	}
	if v.Plan.Hash == "" && m.source == nil {
		return PlanRecord{}, errors.New("migrate: nothing was started yet: begin with `tallystick migrate run --start`")
	}
	record, err := m.register(ctx)
	if err != nil {
		return PlanRecord{}, err
	}
	return m.surveyed(ctx, record)
}

// register makes this pod one of the migration's.
func (m *Migration) register(ctx context.Context) (PlanRecord, error) {
	if err := m.state.Open(ctx, m.plan.record()); err != nil {
		return PlanRecord{}, err
	}
	v, err := m.state.View(ctx)
	return v.Plan, err
}

// surveyed returns record with the slots that there are now, if none are
// written.
func (m *Migration) surveyed(ctx context.Context, record PlanRecord) (PlanRecord, error) {
	if record.Surveyed || m.source == nil {
		return record, nil
	}
	s, err := m.survey(ctx)
	record.Slots, record.Sweep, record.Rows = s.Slots, s.Sweep, s.Rows
	return record, err
}

// survey finds out which slots there are now.
func (m *Migration) survey(ctx context.Context) (Survey, error) {
	extent, err := m.source.Extent(ctx)
	if err != nil {
		return Survey{}, fmt.Errorf("survey the source: %w", err)
	}
	now, err := m.source.Now(ctx)
	if err != nil {
		return Survey{}, fmt.Errorf("survey the source: %w", err)
	}
	slots, err := m.plan.Span(extent, now)
	if err != nil {
		return Survey{}, err
	}
	return Survey{Slots: slots, Sweep: m.plan.sweep(m.axis, slots, now), Rows: extent.Rows}, nil
}

// sweep returns which of slots are walked twice: those that end within the
// plan's sweep before now, by the source's clock.
func (p Plan) sweep(a Axis, slots Span, now time.Time) Span {
	if a.By == ByInteger || p.Slots.Sweep == 0 {
		return Span{slots.Hi, slots.Hi}
	}
	from := a.At(now.Add(-time.Duration(p.Slots.Sweep)))
	return Span{min(max(slots.Lo, from), slots.Hi), slots.Hi}
}

// readable returns which slots may be read now: those whose end lies the plan's
// lag in the past of the source's clock, so that few transactions with a key in
// them are still open.
func (m *Migration) readable(ctx context.Context, slots Span) (Span, error) {
	if m.axis.By == ByInteger {
		return slots, nil
	}
	now, err := m.source.Now(ctx)
	if err != nil {
		return Span{}, err
	}
	past := m.axis.At(now.Add(-time.Duration(m.plan.Slots.Lag)))
	return Span{slots.Lo, min(slots.Hi, past)}, nil
}

// try runs f, and again after each of the plan's delays while it fails with
// ErrTransient.
func (m *Migration) try(ctx context.Context, f func() error) error {
	err := f()
	for _, d := range m.plan.Retry.Delays {
		if err == nil || !errors.Is(err, ErrTransient) || sleep(ctx, time.Duration(d)) != nil {
			return err
		}
		err = f()
	}
	return err
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// contain runs f and turns its panic into an error.
func contain(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("migrate: panic: %v", p)
		}
	}()
	return f()
}
