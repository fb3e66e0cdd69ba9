package migredis

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tallystick/tallystick/migrate"
)

// Survey implements [migrate.Switch].
func (s *State) Survey(ctx context.Context, t migrate.Term, found migrate.Survey) error {
	if err := s.Holds(found); err != nil {
		return err
	}
	plan := s.joinedPlan()
	plan.Slots, plan.Sweep, plan.Rows, plan.Surveyed = found.Slots, found.Sweep, found.Rows, true
	text, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	reply, err := s.registered(ctx, "survey", "survey", args{"keeper": leader(t), "plan": string(text)})
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(reply[1].(string)), &plan); err != nil {
		return fmt.Errorf("survey: the plan in the state: %w", err)
	}
	s.wrote(plan)
	return nil
}

// Holds returns a [*migrate.PlanError] if Lua cannot compute with slots.
func (s *State) Holds(found migrate.Survey) error {
	if !fits(s.axis, found.Slots) || !fits(s.axis, found.Sweep) {
		return &migrate.PlanError{Field: "slots.width", Message: "puts slots beyond 2^53, which Redis cannot compute with", Remedy: "use state.kind file"}
	}
	return nil
}

// written returns the plan with its slots. The pod may have opened the state
// before there were any.
func (s *State) written(ctx context.Context) (migrate.PlanRecord, error) {
	plan := s.joinedPlan()
	if plan.Surveyed || plan.Slots != (migrate.Span{}) || plan.Hash == "" {
		return plan, nil
	}
	v, err := s.View(ctx)
	if err == nil && v.Plan.Surveyed {
		s.wrote(v.Plan)
	}
	return v.Plan, err
}

func (s *State) wrote(plan migrate.PlanRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = plan
}
