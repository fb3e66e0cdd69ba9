package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/migrate"
)

// verifyFlags are the flags of a verification.
type verifyFlags struct {
	mode   string
	only   string
	repair bool
	anew   bool
}

func newMigrateVerify(p *planFile) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare the sink with the source",
		Long: `Compare the sink with the source and print the keys that are missing, different,
extra or unsettled, up to 1,000 of each. Both may be written to meanwhile.

  counts   both sides counted: blind to a row lost and one too many, and not equal
           while rows are inserted or deleted; rows with a note in the outbox are
           compared one by one
  samples  some rows of every slot: finds what was lost in clusters
  full     every row of both sides: what a switch of the readers should rest on

A row that is not equal is read again after each of the plan's verify.recheck; it
counts once it has not changed since. A full verification that was killed, or
stopped, goes on from where it was when the command runs again within a day with
the same plan and the same run.

A bad verdict stays until a full verification that was begun after it comes out
clean. Exit code 3 tells of differences, unsettled rows or rows in quarantine,
and so it does with --repair, which mends them: verify again afterwards.`,
		Example: `  tallystick migrate verify -f plan.yaml --mode full
  tallystick migrate verify -f plan.yaml --mode samples --only 20241020.02
  tallystick migrate verify -f plan.yaml --mode full --repair`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := p.read()
			if err != nil {
				return err
			}
			o, err := f.options(plan)
			if err != nil {
				return err
			}
			return p.c.verify(cmd, plan, o)
		},
	}
	cmd.Flags().StringVar(&f.mode, "mode", "full", "`counts|samples|full`")
	cmd.Flags().StringVar(&f.only, "only", "", "verify only this `slot`")
	cmd.Flags().BoolVar(&f.repair, "repair", false, "write what is missing or different, bury what is extra")
	cmd.Flags().BoolVar(&f.anew, "restart", false, "compare everything, though one that was killed has come half-way")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions([]string{"counts", "samples", "full"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// options returns the flags as the domain has them.
func (f verifyFlags) options(plan migrate.Plan) (migrate.VerifyOptions, error) {
	o := migrate.VerifyOptions{Mode: f.mode, Repair: f.repair, Restart: f.anew}
	switch f.mode {
	case "samples", "full":
	case "counts":
		if f.only != "" || f.repair {
			return o, &usageError{err: errors.New("--mode counts looks at the whole and names no rows"), field: "mode", remedy: "use --mode samples or full with --only and --repair"}
		}
	default:
		return o, &usageError{err: fmt.Errorf("--mode %q is not known", f.mode), field: "mode", remedy: "use counts, samples or full"}
	}
	if f.anew && (f.mode != "full" || f.only != "") {
		return o, &usageError{err: errors.New("--restart is of a full verification of everything: no other goes on"), field: "restart", remedy: "leave it out"}
	}
	if f.only == "" {
		return o, nil
	}
	var err error
	o.Only, err = slotNamed(plan, f.only)
	return o, err
}

func (c *cli) verify(cmd *cobra.Command, plan migrate.Plan, o migrate.VerifyOptions) (err error) {
	j := &job{plan: plan}
	defer func() { err = closed(err, j) }()
	if err := j.open(cmd.Context(), allParts, nil); err != nil {
		return interrupted(cmd.Context(), err)
	}
	p := c.progress("compared", 0)
	o.Progress = steadily(func(n int64) { p.reach(int(n)) })
	o.Resumed = func(r migrate.Resumption) {
		fmt.Fprintf(c.err, "went on from %d %%: %d rows were compared since %s; --restart begins anew\n", r.Percent(), r.Compared, r.Since.Format(time.RFC3339))
	}
	v, err := j.m.Verify(cmd.Context(), o)
	p.end()
	if err != nil {
		return interrupted(cmd.Context(), err)
	}
	if err := c.printVerdict(v, o.Repair); err != nil {
		return err
	}
	return c.verdictExit(cmd.Context(), j, v)
}

// closed returns err, or what closing j brought up.
func closed(err error, j *job) error {
	if e := j.Close(); err == nil {
		return e
	}
	return err
}

// steadily calls f now and then.
func steadily(f func(int64)) func(int64) {
	turn := make(chan time.Time, 1)
	turn <- time.Time{}
	return func(n int64) {
		select {
		case last := <-turn:
			if now := time.Now(); now.Sub(last) > 200*time.Millisecond {
				f(n)
				last = now
			}
			turn <- last
		default: // another worker is at it
		}
	}
}
