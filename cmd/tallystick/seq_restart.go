package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/sequence"
)

func newSeqRestart(c *cli) *cobra.Command {
	var (
		with  *int64
		reuse bool
	)
	cmd := &cobra.Command{
		Use:   "restart NAME",
		Short: "Move a sequence's counter",
		Long: `Move a sequence's counter to its start, or to the value of --with. Values cached
before are burned within seconds.

Moving it back needs --reuse-values: values repeat, in a new epoch, and clients
that hold old ones hand them out beside the new.`,
		Example: `  tallystick seq restart orders_seq --with 5000
  tallystick seq restart orders_seq --with 1 --reuse-values`,
		Args:              names("NAME"),
		ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, func(ctx context.Context, s service) error {
				r, err := s.Restart(ctx, sequence.RestartRequest{Name: args[0], With: with, ReuseValues: reuse})
				if err != nil {
					return err
				}
				return c.printChanged("restarted", r)
			})
		},
	}
	cmd.Flags().Var(int64Flag{&with}, "with", "the next `value` (default: the start of the definition)")
	cmd.Flags().BoolVar(&reuse, "reuse-values", false, "allow moving back: values repeat")
	return cmd
}
