package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/migrate"
)

func newMigrateReplay(p *planFile) *cobra.Command {
	return &cobra.Command{
		Use:   "replay",
		Short: "Try the rows in quarantine again",
		Long: `Try the rows in quarantine again, as the source has them now: correct them there
first. Exit code 3 tells that some are left.`,
		Example: "  tallystick migrate replay -f plan.yaml",
		Args:    names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.within(cmd, allParts, p.c.replay)
		},
	}
}

func (c *cli) replay(ctx context.Context, j *job) error {
	if _, err := j.m.Open(ctx); err != nil {
		return err
	}
	settled, left, err := j.local.Replay(ctx)
	if err != nil {
		return err
	}
	if c.output == jsonForm {
		err = c.printJSON(map[string]int{"settled": settled, "left": left})
	} else {
		_, err = fmt.Fprintf(c.out, "settled %d, left %d in quarantine\n", settled, left)
	}
	if err == nil && left > 0 {
		return errDiffer
	}
	return err
}

func newMigrateCleanup(p *planFile) *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove the tombstones of deleted rows from the sink",
		Long: `Remove the tombstones that the double-writer's deletes left in the sink. It is
refused before a full verification was clean, and until 20 minutes after the last
claim has ended and the last drain of the outbox, replay or repair wrote.`,
		Example: "  tallystick migrate cleanup -f plan.yaml",
		Args:    names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.within(cmd, allParts, func(ctx context.Context, j *job) error {
				n, err := j.m.Cleanup(ctx)
				switch {
				case err != nil:
					return err
				case p.c.output == jsonForm:
					return p.c.printJSON(map[string]int{"removed": n})
				}
				_, err = fmt.Fprintf(p.c.out, "removed %d tombstones\n", n)
				return err
			})
		},
	}
}

func newMigrateReset(p *planFile) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Forget all progress, so that the next start begins anew",
		Long: `Forget all progress, the ledger, the quarantine and the verdict. What was written
to the sink stays; the next start reads everything again. It is refused while
pods hold slots.`,
		Example: "  tallystick migrate reset -f plan.yaml --yes",
		Args:    names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := p.read()
			if err != nil {
				return err
			}
			if !yes {
				if err := p.confirm(plan); err != nil {
					return err
				}
			}
			return p.c.reset(cmd.Context(), plan)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirm asks on a terminal whether to go on.
func (p *planFile) confirm(plan migrate.Plan) error {
	if !terminal(p.c.in) || p.path == "-" {
		return &usageError{err: errors.New("nobody can be asked here"), field: "yes", remedy: "give --yes to forget all progress"}
	}
	fmt.Fprintf(p.c.err, "Forget all progress of %s? [y/N] ", plan.Name)
	answer, _ := bufio.NewReader(p.c.in).ReadString('\n') // the end of input is no
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}

func (c *cli) reset(ctx context.Context, plan migrate.Plan) (err error) {
	j := &job{plan: plan}
	defer func() { err = closed(err, j) }()
	if err := j.open(ctx, onlyState, nil); err != nil {
		return interrupted(ctx, err)
	}
	if err := j.m.Reset(ctx); err != nil {
		return interrupted(ctx, err)
	}
	return c.printStatus(plan, migrate.NotStarted, false)
}
