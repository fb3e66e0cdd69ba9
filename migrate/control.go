package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// CheckState fails with [ErrOtherPlan] unless the state is this migration's, or
// nobody's yet.
func (m *Migration) CheckState(ctx context.Context) error {
	_, err := m.view(ctx)
	return err
}

// view returns a view of this migration.
func (m *Migration) view(ctx context.Context) (View, error) {
	v, err := m.state.View(ctx)
	if err == nil {
		err = m.plan.owns(v.Plan)
	}
	return v, err
}

// Reset forgets everything in the state, which may be of another plan of this
// migration. It fails with [ErrOtherPlan] if it is of another migration, and
// with [ErrWrongStatus] while claims are live.
func (m *Migration) Reset(ctx context.Context) error {
	err := m.CheckState(ctx)
	if e, ok := errors.AsType[*OtherPlanError](err); ok && !e.OtherMigration() {
		err = nil
	}
	if err != nil {
		return err
	}
	return m.state.Reset(ctx)
}

// Start asks for the migration to begin or to go on. It returns the status
// after it: TO_START, or what it was already when there was nothing to do. It
// fails with [ErrWrongStatus] while the migration is stopping.
func (m *Migration) Start(ctx context.Context) (Status, error) {
	if _, err := m.Open(ctx); err != nil {
		return "", err
	}
	return m.command(ctx, func(s Status) (Status, error) {
		switch s {
		case NotStarted, Stopped:
			return ToStart, nil
		case ToStop:
			return "", fmt.Errorf("%w: it is still stopping; wait until it has stopped", ErrWrongStatus)
		}
		return s, nil
	})
}

// Stop asks for the migration to stop, and waits for it as long as ctx allows
// when wait is set. It returns the status it has reached.
func (m *Migration) Stop(ctx context.Context, wait bool) (Status, error) {
	if _, err := m.Open(ctx); err != nil {
		return "", err
	}
	s, err := m.command(ctx, func(s Status) (Status, error) {
		if s == ToStart || s == InProgress {
			return ToStop, nil
		}
		return s, nil
	})
	for err == nil && wait && s == ToStop {
		if sleep(ctx, 200*time.Millisecond) != nil {
			return s, fmt.Errorf("%w: it has not stopped in time; pods may be down or busy, look at `tallystick migrate status`", ErrWrongStatus)
		}
		var v View
		v, err = m.state.View(ctx)
		s = v.Status
	}
	return s, err
}

// command moves the status to what decide makes of it.
func (m *Migration) command(ctx context.Context, decide func(Status) (Status, error)) (Status, error) {
	for range 10 {
		v, err := m.state.View(ctx)
		if err != nil {
			return "", err
		}
		to, err := decide(v.Status)
		if err != nil || to == v.Status {
			return v.Status, err
		}
		err = m.state.Move(ctx, v.Generation, v.Status, to)
		if err == nil || !errors.Is(err, ErrWrongStatus) {
			return to, err
		}
	}
	return "", fmt.Errorf("%w: it is being changed by others all the time", ErrWrongStatus)
}
