package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// keep competes for the role of the Keeper until ctx ends. One pod has it at a
// time; the others stand by.
func (m *Migration) keep(ctx context.Context, record PlanRecord) error {
	interval := time.Duration(m.plan.State.KeeperInterval)
	for {
		err := contain(func() error { return m.keepOnce(ctx, record, 3*interval) })
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

// keepOnce takes or prolongs the role and, having it, does what is due. Only
// the Keeper moves the status on by itself, and each of its writes is refused
// once its term is over.
func (m *Migration) keepOnce(ctx context.Context, record PlanRecord, ttl time.Duration) error {
	sent := time.Now()
	term, err := m.state.Lead(ctx, m.keeper, ttl)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, sent.Add(trust(ttl)))
	defer cancel()
	for {
		v, err := m.state.View(ctx)
		if err != nil {
			return err
		}
		s := nextStep(v, record)
		if s == (step{}) {
			return nil
		}
		if done, err := m.carryOn(ctx, term, v, s); err != nil || !done {
			return err
		}
	}
}

// A step is what the Keeper does next.
type step struct {
	status Status // move to it, if not ""
	phase  Phase  // advance to it, if not ""
	settle bool   // first await every transaction that is open now
	drain  bool   // first deal with what double-writers left
}

// nextStep decides on the Keeper's next step. A phase is over when its slots
// are all finished, none is held and no part is open.
func nextStep(v View, record PlanRecord) step {
	idle := len(v.Live) == 0
	switch v.Status {
	case ToStart:
		return step{status: InProgress, settle: true}
	case ToStop:
		if idle {
			return step{status: Stopped}
		}
	case InProgress:
		return nextPhase(v, record, idle)
	}
	return step{}
}

func nextPhase(v View, record PlanRecord, idle bool) step {
	switch {
	case !idle || len(v.Open) > 0:
	case v.Phase == PhaseCopy && covers(v.Finished[Copying], record.Slots):
		return step{phase: PhaseSweep, settle: true}
	case v.Phase == PhaseSweep && covers(v.Finished[Sweeping], record.Sweep):
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
func (m *Migration) carryOn(ctx context.Context, term Term, v View, s step) (done bool, err error) {
	if s.settle {
		if err := m.settle(ctx); err != nil {
			return false, err
		}
	}
	if s.drain {
		if done, err := m.drain(ctx); err != nil || !done {
			return false, err
		}
	}
	if s.phase != "" {
		m.log.Info("phase", "from", v.Phase, "to", s.phase)
		if err := m.state.Advance(ctx, term, s.phase); err != nil {
			return false, fmt.Errorf("advance to %s: %w", s.phase, err)
		}
	}
	if s.status != "" {
		m.log.Info("status", "from", v.Status, "to", s.status)
		if err := m.state.Move(ctx, v.Generation, v.Status, s.status); err != nil && !errors.Is(err, ErrWrongStatus) {
			return false, fmt.Errorf("move to %s: %w", s.status, err)
		}
	}
	return true, nil
}

// settle returns when every transaction that is open now has ended, so that
// what they wrote is visible to whoever reads afterwards.
func (m *Migration) settle(ctx context.Context) error {
	s, ok := m.source.(Settler)
	if !ok {
		return nil
	}
	token, err := s.Settled(ctx)
	if err != nil {
		return fmt.Errorf("await open transactions: %w", err)
	}
	if err := s.Await(ctx, token); err != nil {
		return fmt.Errorf("await open transactions: %w", err)
	}
	return nil
}

// drainBatch is how many left-over keys are dealt with at once.
const drainBatch = 500

// drain writes the rows that double-writers noted and may not have written,
// and reports whether none is left of those whose transactions began before.
// A row is read from the source after its note, so it is as new as the note.
func (m *Migration) drain(ctx context.Context) (done bool, err error) {
	box, ok := m.source.(Outbox)
	if !ok {
		return true, nil
	}
	if err := m.settle(ctx); err != nil {
		return false, err
	}
	w := m.sink.Writer()
	for {
		left, none, err := box.Pending(ctx, drainBatch)
		if err != nil || none || len(left) == 0 {
			return err == nil, err
		}
		if err := m.rewrite(ctx, w, left); err != nil {
			return false, fmt.Errorf("drain the outbox: %w", err)
		}
		if err := box.Clear(ctx, left); err != nil {
			return false, fmt.Errorf("drain the outbox: %w", err)
		}
	}
}

// rewrite brings the sink to what the source has of keys.
func (m *Migration) rewrite(ctx context.Context, w Writer, left []Left) error {
	keys := make([]Key, len(left))
	for i, l := range left {
		keys[i] = l.Key
	}
	rows, err := m.source.Get(ctx, keys, true)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(rows))
	for _, r := range rows {
		there[r.Key.String()] = true
		if r, err = m.mapping(r); err != nil {
			return fmt.Errorf("row %s: %w", r.Key, err)
		}
		if err := m.put(ctx, w, r); err != nil {
			return fmt.Errorf("row %s: %w", r.Key, err)
		}
	}
	for _, l := range left {
		if there[l.Key.String()] {
			continue
		}
		if err := m.buryLeft(ctx, w, l); err != nil {
			return fmt.Errorf("row %s: %w", l.Key, err)
		}
	}
	return nil
}

// put writes one row, over another of the same version too.
func (m *Migration) put(ctx context.Context, w Writer, r Row) error {
	results, err := w.Write(ctx, []Row{r})
	if err != nil {
		return err
	}
	switch results[0].Outcome {
	case Unknown:
		return ErrTransient
	case Refused:
		return errors.New(results[0].Reason)
	case Differs:
		_, err = w.Replace(ctx, r)
	}
	return err
}

// buryLeft puts a tombstone in the place of an item whose row was deleted by a
// double-writer that died before it had done so itself. It has the version of
// the deletion, also where the sink has nothing: a put of the row that comes
// late must find it. Of a note without one it has the version after the item's.
func (m *Migration) buryLeft(ctx context.Context, w Writer, l Left) error {
	if l.Ref == "" {
		m.log.Warn("a deletion was left and its note does not name the item: verify in full", "key", l.Key.String())
		return nil
	}
	if l.Version > 0 {
		return buryAt(ctx, w, l)
	}
	items, err := m.sink.Refresh(ctx, []Stored{{Ref: l.Ref}})
	if err != nil || !items[0].Found || items[0].Tombstone {
		return err
	}
	_, err = w.Bury(ctx, items[0])
	return err
}

// buryAt puts a tombstone of a note's version. A row of that very version is
// what the note is about: it was deleted later, without a note, with a version
// above it.
func buryAt(ctx context.Context, w Writer, l Left) error {
	r, err := w.BuryAt(ctx, l.Ref, l.Version)
	if err == nil && r.Outcome == Differs {
		_, err = w.BuryAt(ctx, l.Ref, l.Version+1)
	}
	return err
}
