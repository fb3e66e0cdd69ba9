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
			if !yes {
				if err := c.confirmDelete(cmd, args[0]); err != nil {
					return err
				}
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

// confirmDelete asks on a terminal whether to delete a sequence that exists;
// elsewhere only --yes says yes.
func (c *cli) confirmDelete(cmd *cobra.Command, name string) error {
	if !terminal(c.in) {
		return &usageError{err: fmt.Errorf("nobody is there to ask whether to delete %s", name), field: "yes", remedy: "give --yes"}
	}
	err := c.with(cmd, func(ctx context.Context, s service) error {
		_, err := s.Get(ctx, name)
		return err
	})
	if err != nil {
		return err
	}
	return c.ask(cmd.Context(), "Really delete "+name+"?")
}

// ask asks a question that only yes answers with yes. A signal ends it at once.
func (c *cli) ask(ctx context.Context, question string) error {
	fmt.Fprintf(c.err, "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() { // ends with the process: a read from a terminal cannot be called off
		answer, _ := bufio.NewReader(c.in).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(c.err)
		return errInterrupted
	case a := <-answers:
		if a != "y" && a != "yes" {
			return errors.New("nothing was changed")
		}
	}
	return nil
}
