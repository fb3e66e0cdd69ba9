package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/sequence"
)

func newSeqAlter(c *cli) *cobra.Command {
	var (
		flags     specFlags
		ifVersion uint32
		reuse     bool
	)
	cmd := &cobra.Command{
		Use:   "alter NAME",
		Short: "Change a sequence's definition",
		Long: `Change what the flags say of a definition and leave the rest. The counter stays
where it is and has to lie within the new bounds. Every server takes the change
over within seconds; values cached under the old definition are burned.

Changing direction needs --reuse-values, because values repeat.`,
		Example: `  tallystick seq alter orders_seq --increment 10
  tallystick seq alter orders_seq --max 2147483647 --if-version 3
  tallystick seq alter ring_seq --cycle=false
  tallystick seq alter orders_seq --owner 'team orders' --label env=prod
  tallystick seq alter orders_seq --label ""`,
		Args:              names("NAME"),
		ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := flags.said(cmd, args[0])
			if err != nil {
				return err
			}
			if !flags.given(cmd) {
				return &usageError{err: errors.New("nothing to alter"), remedy: "say what with a flag; --help lists them"}
			}
			return c.with(cmd, func(ctx context.Context, s service) error {
				r, err := s.Alter(ctx, sequence.AlterRequest{Spec: spec, IfVersion: ifVersion, ReuseValues: reuse})
				if err != nil {
					return err
				}
				return c.printChanged("altered", r)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().Uint32Var(&ifVersion, "if-version", 0, "only if the definition has this `version` still (default: whichever it has)")
	cmd.Flags().BoolVar(&reuse, "reuse-values", false, "allow a change of direction: values repeat")
	return cmd
}
