package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// keep competes for the role of the Keeper until ctx ends. One pod has it at a
// time; the others stand by.
func (m *Migration) keep(ctx context.Context) error {
	interval := time.Duration(m.plan.State.KeeperInterval)
	for {
		err := contain(func() error { return m.keepOnce(ctx, 3*interval) })
		switch {
		case fatal(err):
			return err
		case err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotHeld):
			m.log.Warn("keeper", "error", err)
		}
		if sleep(ctx, interval) != nil {
			return nil
		}
	}
}

// keepOnce takes or prolongs the role and, having it, takes one step after the
// other until none is due. Only the Keeper moves the status on by itself, and
// each of its writes is refused once its term is over.
func (m *Migration) keepOnce(ctx context.Context, ttl time.Duration) error {
	for {
		sent := time.Now()
		term, err := m.state.Lead(ctx, m.keeper, ttl)
		if err != nil {
			return err
		}
		v, err := m.state.View(ctx)
		if err != nil {
			return err
		}
		s := nextStep(v)
		if s == (step{}) {
			return nil
		}
		l := lease{ttl, sent.Add(trust(ttl)), func(ctx context.Context) error { return m.prolong(ctx, term, ttl, v) }}
		if done, err := m.take(ctx, l, term, v, s); err != nil || !done {
			return err
		}
	}
}

// take takes a step, however long that lasts: the term is renewed meanwhile.
// It ends when somebody changes the status.
func (m *Migration) take(ctx context.Context, l lease, term Term, v View, s step) (done bool, err error) {
	err = m.keeping(ctx, l, func(h *hold) (err error) {
		done, err = m.carryOn(h, term, v, s)
		return err
	})
	switch {
	case errors.Is(err, errLeft):
		return true, nil // something else is due
	case errors.Is(err, errStalled): // perhaps another pod can do it
		err = errors.Join(err, m.state.Resign(ctx, term))
	}
	return done, err
}

// prolong renews a term while the status is that of v.
func (m *Migration) prolong(ctx context.Context, term Term, ttl time.Duration, v View) error {
	renewed, err := m.state.Lead(ctx, m.keeper, ttl)
	switch {
	case err != nil:
		return err
	case renewed != term: // it was over
		return ErrNotHeld
	}
	now, err := m.state.View(ctx)
	if err == nil && (now.Status != v.Status || now.Generation != v.Generation) {
		err = errLeft
	}
	return err
}

// A step is what the Keeper does next.
type step struct {
	status Status // move to it, if not ""
	phase  Phase  // advance to it, if not ""
	settle bool   // first await every transaction that is open now
	survey bool   // then write which slots there are
	drain  bool   // first deal with what double-writers left
}

// nextStep decides on the Keeper's next step. A phase is over when its slots
// are all finished, none is held and no part is open.
func nextStep(v View) step {
	idle := len(v.Live) == 0
	switch v.Status {
	case ToStart:
		return step{status: InProgress, settle: true, survey: !v.Plan.Surveyed}
	case ToStop:
		if idle {
			return step{status: Stopped}
		}
	case InProgress:
		return nextPhase(v, idle)
	}
	return step{}
}

func nextPhase(v View, idle bool) step {
	switch {
	case !idle || len(v.Open) > 0:
	case v.Phase == PhaseCopy && covers(v.Finished[Copying], v.Plan.Slots):
		return step{phase: PhaseSweep, settle: true}
	case v.Phase == PhaseSweep && covers(v.Finished[Sweeping], v.Plan.Sweep):
		return step{phase: PhaseOutbox, settle: true}
	case v.Phase == PhaseOutbox:
		return step{phase: PhaseDone, drain: true}
	case v.Phase == PhaseDone:
		return step{status: Finished}
	}
	return step{}
}

// covers reports whether coalesced spans hold all of s.
func covers(spans []Span, s Span) bool {
	if s.Lo >= s.Hi {
		return true
	}
	for _, f := range spans {
		if f.Lo <= s.Lo && s.Hi <= f.Hi {
			return true
		}
	}
	return false
}

// carryOn does a step and reports whether it is done. If the process dies
// before its last call, the next Keeper decides the same again.
func (m *Migration) carryOn(h *hold, term Term, v View, s step) (done bool, err error) {
	m.awaited.begin(v)
	if s.settle {
		if err := m.settle(h); err != nil {
			return false, err
		}
	}
	if s.survey {
		if err := m.layOut(h, term); err != nil {
			return false, err
		}
	}
	if s.drain {
		if err := m.drain(h, term); err != nil {
			return false, err
		}
	}
	if s.phase != "" {
		m.log.Info("phase", "from", v.Phase, "to", s.phase)
		if err := m.state.Advance(h, term, s.phase); err != nil {
			return false, fmt.Errorf("advance to %s: %w", s.phase, err)
		}
	}
	if s.status == Finished {
		if err := m.accounted(h, v); err != nil {
			return false, err
		}
	}
	if s.status != "" {
		m.log.Info("status", "from", v.Status, "to", s.status)
		if err := m.state.Move(h, v.Generation, v.Status, s.status); err != nil && !errors.Is(err, ErrWrongStatus) {
			return false, fmt.Errorf("move to %s: %w", s.status, err)
		}
	}
	return true, nil
}

// layOut writes which slots there are. Every transaction that was open at the
// start must have ended: its rows count.
func (m *Migration) layOut(ctx context.Context, term Term) error {
	s, err := m.survey(ctx)
	if err != nil {
		return err
	}
	m.log.Info("survey", "slots", s.Slots.Hi-s.Slots.Lo, "rows", s.Rows)
	err = m.state.Survey(ctx, term, s)
	if err != nil && !errors.Is(err, ErrWrongStatus) { // then the move comes too late, too
		return fmt.Errorf("write which slots there are: %w", err)
	}
	return nil
}
