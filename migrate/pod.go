package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errLeft: the status is not what the pod's present role is for.
var errLeft = errors.New("migrate: status changed")

// Run is one pod. It waits for the migration to be started, works while it is
// in progress, idles while it is stopped, and returns nil once it is finished
// or ctx has ended. Any number of pods may run; which one leads does not
// matter.
//
// It returns an error when it cannot be of use any more: the state is lost, or
// belongs to another plan, or the table cannot be cut into slots. Whatever else fails is tried again.
func (m *Migration) Run(ctx context.Context) error {
	if err := m.openPatiently(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var keeper sync.WaitGroup
	keeper.Go(func() {
		if err := m.keep(ctx); err != nil {
			stop(err)
		}
	})
	err := m.follow(ctx)
	stop(nil)
	keeper.Wait()
	if cause := context.Cause(ctx); fatal(cause) {
		return cause
	}
	return err
}

// openPatience is how long a pod that starts waits for the state to answer.
const openPatience = time.Minute

func (m *Migration) openPatiently(ctx context.Context) error {
	for began := time.Now(); ; {
		_, err := m.register(ctx)
		if !errors.Is(err, ErrTransient) || time.Since(began) > openPatience {
			return err
		}
		m.log.Warn("not open yet", "error", err)
		if sleep(ctx, time.Duration(m.plan.Retry.Restart)) != nil {
			return err
		}
	}
}

// fatal reports whether err ends a pod: the state is not its any more, or the
// table cannot be cut into slots.
func fatal(err error) bool {
	_, unfit := errors.AsType[*PlanError](err)
	return unfit || errors.Is(err, ErrStateLost) || errors.Is(err, ErrOtherPlan) || errors.Is(err, ErrOffAxis)
}

// follow does what the status asks for until the migration is finished or ctx
// ends.
func (m *Migration) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		v, err := m.state.View(ctx)
		switch {
		case fatal(err):
			return err
		case err != nil:
			m.log.Warn("state not read", "error", err)
		case v.Status == Finished:
			return nil
		case v.Status == InProgress && v.Phase == PhaseCopy:
			m.asWorkers(ctx, v, walk{Copying, v.Plan.Slots, v.Plan.Slots})
		case v.Status == InProgress && v.Phase == PhaseSweep:
			m.asWorkers(ctx, v, walk{Sweeping, v.Plan.Sweep, v.Plan.Slots})
		}
		if sleep(ctx, m.poll()) != nil {
			break
		}
	}
	return nil
}

// poll is how often a pod looks at the status.
func (m *Migration) poll() time.Duration {
	return min(time.Second, time.Duration(m.plan.State.KeeperInterval)/2)
}

// asWorkers works on a pass until the status or the phase is another than in v.
// All work ends with its context.
func (m *Migration) asWorkers(ctx context.Context, v View, k walk) {
	m.log.Info("working", "pass", k.pass, "workers", m.plan.Workers)
	defer m.log.Info("not working", "pass", k.pass)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	for range m.plan.Workers {
		workers.Go(func() { m.work(ctx, k) })
	}
	for sleep(ctx, m.poll()) == nil {
		now, err := m.state.View(ctx)
		if err == nil {
			m.share(now)
		}
		if fatal(err) || err == nil && (now.Status != v.Status || now.Phase != v.Phase || now.Generation != v.Generation) {
			cancel(errLeft)
		}
	}
	workers.Wait()
}

// work takes one slot after the other until ctx ends. A failure ends the slot,
// not the worker: the slot is begun again from its saved progress, by whoever
// takes it.
func (m *Migration) work(ctx context.Context, k walk) {
	w := m.sink.Writer()
	for ctx.Err() == nil {
		err := contain(func() error { return m.workOnce(ctx, k, w) })
		if err == nil || ctx.Err() != nil {
			continue
		}
		if !errors.Is(err, ErrNotHeld) && !errors.Is(err, ErrWrongStatus) { // another took it, or the run has ended
			m.log.Warn("slot given up for now", "error", err)
		}
		if sleep(ctx, time.Duration(m.plan.Retry.Restart)) != nil {
			return
		}
	}
}

// workOnce takes a slot and copies it.
func (m *Migration) workOnce(ctx context.Context, k walk, w Writer) error {
	c, err := m.nextSlot(ctx, k)
	if err != nil {
		return err
	}
	err = m.holding(ctx, c, func(h *hold) error { return m.copySlot(h, c, k, w) })
	if err == nil {
		return nil
	}
	err = fmt.Errorf("slot %s: %w", m.axis.Name(c.Slot), err)
	if errors.Is(err, ErrNotHeld) {
		return err
	}
	return errors.Join(err, m.letGo(ctx, c))
}
