package main

import (
	"context"

	"github.com/spf13/cobra"
)

func newSeqGet(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "get NAME",
		Short: "Show a sequence",
		Long: `Show a sequence's definition and how far it has been taken. "next" is the next
value that the store hands out: servers and clients hold some before it.`,
		Example: `  tallystick seq get orders_seq
  tallystick seq get orders_seq -o json`,
		Args:              names("NAME"),
		ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, func(ctx context.Context, s service) error {
				r, err := s.Get(ctx, args[0])
				if err != nil {
					return err
				}
				return c.printRecord(r)
			})
		},
	}
}
