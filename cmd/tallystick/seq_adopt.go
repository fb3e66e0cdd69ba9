package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/internal/datadir"
	"github.com/tallystick/tallystick/sequence"
)

func newSeqAdopt(c *cli) *cobra.Command {
	var (
		o      storeOptions
		config string
		skip   *int64
	)
	cmd := &cobra.Command{
		Use:   "adopt --skip N",
		Short: "Take over a restored store",
		Long: `Take over a store that was restored from a backup, or a table that took the place
of another: move every counter N values on and accept the store as the right
one. Without it a server refuses a table that is not the one it knew.

N has to be at least as many values as any sequence handed out since the backup.
It works on the store itself, with the settings of "serve": stop every server of
it first. Doing it twice skips twice, which is harmless.`,
		Example: `  tallystick seq adopt --skip 1000000 --data ./data
  tallystick seq adopt --skip 1000000 --store dynamodb --dynamodb-table sequences`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if skip == nil {
				return &usageError{err: errors.New("--skip is missing"), field: "skip", remedy: "give as many values as any sequence handed out since the backup"}
			}
			if err := loadSettings(cmd, settingNames(newServe(c)), config); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			return c.adopt(cmd.Context(), o, *skip)
		},
	}
	o.add(cmd)
	cmd.Flags().StringVar(&config, "config", "", "YAML `file` with the settings of serve")
	cmd.Flags().Var(int64Flag{&skip}, "skip", "`values` to skip in every sequence")
	return cmd
}

func (c *cli) adopt(ctx context.Context, o storeOptions, n int64) (err error) {
	dir, err := datadir.Open(o.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	store, err := openStore(ctx, o, dir, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	done := c.progress("moved", 0)
	moved, err := sequence.Skip(ctx, store, n, done.reach)
	done.end()
	if err == nil {
		err = store.Adopt(ctx)
	}
	if err != nil {
		return interrupted(ctx, err)
	}
	if c.output == jsonForm {
		return c.printJSON(map[string]any{"moved": moved, "skip": number(n)})
	}
	_, err = fmt.Fprintf(c.out, "adopted %s: moved %d sequences on by %d values\n", o.describe(), moved, n)
	return err
}
