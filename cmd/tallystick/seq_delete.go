package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newSeqDelete(c *cli) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a sequence",
		Long: `Delete a sequence. Servers stop granting its values within seconds; clients hand
out what they have cached. A tombstone keeps its counter, so that creating the
name again goes on beyond it.`,
		Example: `  tallystick seq delete orders_seq
  tallystick seq delete orders_seq --yes`,
		Args:              names("NAME"),
		ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.confirm(yes, "delete "+args[0]); err != nil {
				return err
			}
			return c.with(cmd, func(ctx context.Context, s service) error {
				if err := s.Delete(ctx, args[0]); err != nil {
					return err
				}
				if c.output == jsonForm {
					return c.printJSON(map[string]string{"name": args[0], "state": "deleted"})
				}
				_, err := fmt.Fprintf(c.out, "deleted %s\n", args[0])
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirm asks on a terminal; elsewhere only --yes says yes.
func (c *cli) confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	if !terminal(c.in) {
		return usagef("--yes is missing: nobody is there to ask whether to %s", what)
	}
	fmt.Fprintf(c.err, "Really %s? [y/N] ", what)
	answer, _ := bufio.NewReader(c.in).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}
