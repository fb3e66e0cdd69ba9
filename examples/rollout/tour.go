package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/tallystick/tallystick/rollout"
)

const (
	writers = 2
	deaths  = 6 // in each phase
)

// A tour goes through all phases.
type tour struct {
	*sides
	out    io.Writer
	errors io.Writer // of the writers
}

func (t *tour) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

func (t *tour) walk(ctx context.Context) error {
	if err := t.setup(ctx); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	folder, err := os.MkdirTemp("", "rollout-example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for phase := rollout.OldOnly; phase <= rollout.NewOnly; phase++ {
		if err := t.stay(ctx, phase, folder); err != nil {
			return fmt.Errorf("%s: %w", phase, err)
		}
	}
	t.say("done: new only")
	return nil
}

// stay is one phase: writers work and die, and what has to be done before the
// next phase is done. All are dead when it ends, so that no process is left in
// it.
func (t *tour) stay(ctx context.Context, phase rollout.Phase, folder string) error {
	c := startCrew(ctx, phase, writers, t.errors)
	defer c.end()
	if err := c.await(deaths); err != nil {
		return err
	}
	t.say("%-10s  %d writers were killed", phase, deaths)
	if phase == rollout.WriteBoth {
		if err := t.copy(ctx, c, folder); err != nil {
			return err
		}
	}
	c.end()
	if phase == rollout.OldOnly || phase == rollout.NewOnly {
		return nil
	}
	return t.settle(ctx, phase, folder)
}

// copy runs the migration while the writers go on dying.
func (t *tour) copy(ctx context.Context, c *crew, folder string) error {
	m, closeAll, err := copier(ctx, folder)
	if err != nil {
		return err
	}
	defer closeAll()
	more := make(chan error, 1)
	go func() { more <- c.await(2 * deaths) }() // ends with the writers, which outlive it
	report, err := migrateAll(ctx, m)
	if err != nil {
		return err
	}
	if err := <-more; err != nil {
		return err
	}
	t.say("%-10s  copied: %d slots, %d rows read, %d written, %d newer already", rollout.WriteBoth,
		report.Slots.Finished, report.Rows.Read, report.Rows.Written, report.Rows.AlreadyNewer)
	return nil
}

// settle drains what the dead have left and has both sides compared, by the
// reader of the compare phase and by the migration.
func (t *tour) settle(ctx context.Context, phase rollout.Phase, folder string) error {
	differences := 0
	s := t.store(rollout.Compare, func(d rollout.Difference[key]) {
		differences++
		t.say("%-10s  differs: %+v", phase, d)
	})
	drained, err := s.Drain(ctx)
	if err != nil {
		return err
	}
	for i := range events {
		if _, _, err := s.Get(ctx, event(i)); err != nil {
			return err
		}
	}
	m, closeAll, err := copier(ctx, folder)
	if err != nil {
		return err
	}
	defer closeAll()
	rows, err := verify(ctx, m)
	if err != nil {
		return err
	}
	t.say("%-10s  %d notes drained, %d keys compared, %d rows verified, %d differences", phase, drained, s.Stats().Compared, rows, differences)
	if differences > 0 {
		return fmt.Errorf("%d differences", differences)
	}
	return nil
}
