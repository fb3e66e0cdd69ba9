package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/migrate"
)

func newMigrateStart(p *planFile) *cobra.Command {
	return &cobra.Command{
		Use:   "start",
		Short: "Let the pods begin, or go on",
		Long: `Let the pods begin, or go on after a stop. Before the first start everything is
looked at as by plan, and a refusal ends it. When there is nothing to do, because
it was started already or is finished, the command says so and succeeds.`,
		Example: "  tallystick migrate start -f plan.yaml",
		Args:    names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			parts := onlyState
			err := p.within(cmd, onlyState, func(ctx context.Context, j *job) error {
				v, err := j.state.View(ctx)
				if err != nil || v.Generation == 0 {
					parts = allParts // they are looked at
					return err
				}
				return p.c.start(ctx, j)
			})
			if err != nil || parts == onlyState {
				return err
			}
			return p.within(cmd, allParts, p.c.start)
		},
	}
}

// start starts a migration and says what it did.
func (c *cli) start(ctx context.Context, j *job) error {
	before, err := j.local.Status(ctx)
	if err != nil {
		return err
	}
	status, err := j.local.Start(ctx)
	if err != nil {
		return err
	}
	if err := c.printStatus(j.plan, status, status == before.Status); err != nil || status != migrate.Finished {
		return err
	}
	n, err := j.quarantined(ctx)
	if err != nil || n == 0 {
		return err
	}
	return c.quarantineExit(quarantineFailure(j.plan, n, errNotListed))
}

// printStatus says in one line where a migration is after a command.
func (c *cli) printStatus(plan migrate.Plan, status migrate.Status, already bool) error {
	if c.output == jsonForm {
		return c.printJSON(map[string]any{"name": plan.Name, "status": status, "already": already})
	}
	word := ""
	if already {
		word = "already "
	}
	_, err := fmt.Fprintf(c.out, "%s: %s%s\n", plan.Name, word, status)
	return err
}

func newMigrateStop(p *planFile) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Let all pods stop",
		Long: `Let all pods stop. What is under way is finished and saved; the pods stay and go
on after start. It has stopped when the status is STOPPED: --wait waits for it.`,
		Example: `  tallystick migrate stop -f plan.yaml
  tallystick migrate stop -f plan.yaml --wait 60s`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 {
				return &usageError{err: fmt.Errorf("--wait %s is out of range", wait), field: "wait", remedy: "use 0 or more"}
			}
			return p.within(cmd, onlyState, func(ctx context.Context, j *job) error { return p.c.stop(ctx, j, wait) })
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "`time` to wait until it has stopped; 0: not at all")
	return cmd
}

func (c *cli) stop(ctx context.Context, j *job, wait time.Duration) error {
	begun, err := j.begun(ctx)
	if err != nil {
		return err
	}
	if !begun {
		return c.printStatus(j.plan, migrate.NotStarted, true)
	}
	if _, err := j.m.Open(ctx); err != nil {
		return err
	}
	before, err := j.local.Status(ctx)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if wait == 0 {
		waiting = ctx
	}
	status, err := j.m.Stop(waiting, wait > 0)
	if err != nil {
		return untimely(ctx, err, wait)
	}
	return c.printStatus(j.plan, status, status == before.Status)
}

// untimely says that a wait was in vain, where the wait itself ended a call.
func untimely(ctx context.Context, err error, wait time.Duration) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, migrate.ErrWrongStatus) {
		return err
	}
	return &usageless{fmt.Sprintf("it has not stopped within %s", wait), "pods may be down or busy; `tallystick migrate status` tells which slots are held"}
}
