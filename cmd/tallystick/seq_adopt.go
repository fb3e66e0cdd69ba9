package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

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
It works on the store itself, which has to be there, with the settings of
"serve": name the same store, and stop every server of it first. Doing it twice
skips twice, which is harmless.`,
		Example: `  tallystick seq adopt --skip 1000000 --data ./data
  tallystick seq adopt --skip 1000000 --store dynamodb --dynamodb-table sequences`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case skip == nil:
				return &usageError{err: errors.New("--skip is missing"), field: "skip", remedy: "give as many values as any sequence handed out since the backup"}
			case *skip < 1:
				return &usageError{err: fmt.Errorf("--skip %d is out of range", *skip), field: "skip", remedy: "give as many values as any sequence handed out since the backup, 1 or more"}
			}
			if err := loadSettings(cmd, settingNames(newServe(c)), config); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			c.warnUnknown(cmd.Root(), os.Environ())
			return c.adopt(cmd.Context(), o, *skip)
		},
	}
	o.add(cmd)
	_ = cmd.Flags().MarkHidden("dynamodb-create") // known, because it is a setting of serve; adopt makes nothing
	withoutGlobals(cmd, "server", "token-file", "tls-ca", "insecure-no-tls", "timeout")
	cmd.Flags().StringVar(&config, "config", "", "YAML `file` with the settings of serve")
	cmd.Flags().Var(int64Flag{&skip}, "skip", "`values` to skip in every sequence")
	return cmd
}

func (c *cli) adopt(ctx context.Context, o storeOptions, n int64) (err error) {
	if err := o.present(); err != nil {
		return err
	}
	if _, err := os.Stat(o.data); err == nil { // servers of a table have folders of their own, on other machines too
		dir, err := hold(o.data, "stop the server first: adopt needs the store to itself")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
	}
	o.create = false
	store, err := openStore(ctx, o, true)
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
