package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A spanner is a state that cannot keep just any slots.
type spanner interface{ Holds(Survey) error }

// foresee looks at the state and, unless the source was refused and need not
// have an extent, at what a survey would find now. It returns what is worth
// knowing of that.
func (m *Migration) foresee(ctx context.Context, refused bool) ([]Finding, error) {
	err := m.CheckState(ctx)
	if e, ok := errors.AsType[*OtherPlanError](err); ok {
		return []Finding{{Severity: Refusal, Field: "state", Message: e.difference(), Remedy: e.Remedy()}}, nil
	}
	if err != nil || refused || m.source == nil {
		return nil, err
	}
	return m.foreseeSlots(ctx)
}

func (m *Migration) foreseeSlots(ctx context.Context) ([]Finding, error) {
	extent, err := m.source.Extent(ctx)
	if err != nil {
		return nil, fmt.Errorf("survey the source: %w", err)
	}
	now, err := m.source.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("survey the source: %w", err)
	}
	slots, err := m.plan.Span(extent, now)
	if s, ok := m.state.(spanner); ok && err == nil {
		err = s.Holds(Survey{Slots: slots})
	}
	if err != nil {
		return unfit(err)
	}
	found := append(m.plan.notYet(slots, now), m.plan.belowFrom(extent)...)
	return append(found, m.plan.beyondNow(extent, now)...), nil
}

// longWait is how long a wait for the newest slot is worth a warning.
const longWait = 25 * time.Hour

// notYet tells when the newest slot is copied, if that is not at once.
func (p Plan) notYet(slots Span, now time.Time) []Finding {
	a := p.Axis()
	if a.By == ByInteger || slots.Lo >= slots.Hi {
		return nil
	}
	at := time.UnixMilli(slots.Hi * a.Width).Add(time.Duration(p.Slots.Lag)).UTC()
	wait := at.Sub(now)
	if wait <= 0 {
		return nil
	}
	f := Finding{Severity: Note, Field: "slots", Message: fmt.Sprintf("the newest slot is copied when it has ended and lag has passed, at %s: it is not finished before", at.Format(time.RFC3339))}
	if wait > longWait {
		f.Severity, f.Remedy = Warning, "use a smaller width and lag, or a to that lies back"
	}
	return []Finding{f}
}

// belowFrom notes that a from leaves no row out.
func (p Plan) belowFrom(e Extent) []Finding {
	if e.Min == nil || p.Slots.From == nil {
		return nil
	}
	a := p.Axis()
	if i, err := a.Index(e.Min); err != nil || i >= a.At(*p.Slots.From) {
		return nil
	}
	return []Finding{{Severity: Note, Field: "slots.from", Message: fmt.Sprintf("rows before it, the first of which is %s, are copied with the lowest slot and verified, like all others", e.Min)}}
}

// unfit returns what is wrong with slots as a finding.
func unfit(err error) ([]Finding, error) {
	if e, ok := errors.AsType[*PlanError](err); ok {
		return []Finding{{Severity: Refusal, Field: e.Field, Message: e.Message, Remedy: e.Remedy}}, nil
	}
	if errors.Is(err, ErrOffAxis) {
		return []Finding{{Severity: Refusal, Field: "slots.by", Message: err.Error(), Remedy: "mend or remove that row: it would lie beyond all slots and not be copied; or cut the slots by what the keys are"}}, nil
	}
	return nil, err
}

// beyondNow warns of keys that are not copied because they lie in the future.
func (p Plan) beyondNow(e Extent, now time.Time) []Finding {
	a := p.Axis()
	if e.Max == nil || a.By == ByInteger || p.Slots.To != nil {
		return nil
	}
	if i, err := a.Index(e.Max); err != nil || i <= a.At(now) {
		return nil
	}
	return []Finding{{Severity: Warning, Field: "slots.to", Message: fmt.Sprintf("key %s lies in the future of the database's clock: rows beyond the slot of now are left to the application, not copied", e.Max),
		Remedy: "mend what a full verification finds missing with --repair, or name a to beyond them, for which the copy waits"}}
}
