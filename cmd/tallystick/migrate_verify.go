package main

import (
	"context"
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
}

func newMigrateVerify(p *planFile) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare the sink with the source",
		Long: `Compare the sink with the source and print the keys that are missing, different,
extra or unsettled, up to 1,000 of each. Both may be written to meanwhile.

  counts   both sides counted: fast, and blind to a row lost and one too many
  samples  some rows of every slot: finds what was lost in clusters
  full     every row of both sides: what a switch of the readers should rest on

A bad verdict stays until a full verification comes out clean. Exit code 3 tells
of differences, unsettled rows or rows in quarantine, and so it does with
--repair, which mends them: verify again afterwards.`,
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
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions([]string{"counts", "samples", "full"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// options returns the flags as the domain has them.
func (f verifyFlags) options(plan migrate.Plan) (migrate.VerifyOptions, error) {
	o := migrate.VerifyOptions{Mode: f.mode, Repair: f.repair}
	switch f.mode {
	case "samples", "full":
	case "counts":
		if f.only != "" || f.repair {
			return o, &usageError{err: fmt.Errorf("--mode counts looks at the whole and names no rows"), field: "mode", remedy: "use --mode samples or full with --only and --repair"}
		}
	default:
		return o, &usageError{err: fmt.Errorf("--mode %q is not known", f.mode), field: "mode", remedy: "use counts, samples or full"}
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

// verdictExit ends a verification with its exit code.
func (c *cli) verdictExit(ctx context.Context, j *job, v migrate.Verdict) error {
	if !v.Clean {
		return errDiffer
	}
	last, ok, err := j.state.Verdict(ctx)
	if err == nil && ok && !last.Clean {
		fmt.Fprintf(c.err, "The verdict of %s stays %s until a full verification is clean.\n", last.At.Format(time.RFC3339), verdictWord(last))
	}
	return err
}

// A verdictView is a verdict as it is printed.
type verdictView struct {
	Verdict     string    `json:"verdict"`
	Mode        string    `json:"mode"`
	Compared    int64     `json:"compared"`
	Missing     []string  `json:"missing"`
	Different   []string  `json:"different"`
	Extra       []string  `json:"extra"`
	Unsettled   []string  `json:"unsettled"`
	Quarantined int64     `json:"quarantined"`
	Plan        string    `json:"plan"`
	At          time.Time `json:"at"`
}

func viewVerdict(v migrate.Verdict) verdictView {
	return verdictView{
		Verdict: verdictWord(v), Mode: v.Mode, Compared: v.Compared,
		Missing: keyWords(v.Missing), Different: keyWords(v.Different), Extra: keyWords(v.Extra), Unsettled: keyWords(v.Unsettled),
		Quarantined: v.Quarantined, Plan: v.Plan, At: v.At,
	}
}

func keyWords(keys []migrate.Key) []string {
	words := make([]string, len(keys))
	for i, k := range keys {
		words[i] = k.String()
	}
	return words
}

// verdictWord returns what a verdict comes to.
func verdictWord(v migrate.Verdict) string {
	switch {
	case v.Clean:
		return "clean"
	case len(v.Missing)+len(v.Different)+len(v.Extra) > 0:
		return "different"
	case len(v.Unsettled) > 0:
		return "unsettled"
	case v.Quarantined > 0:
		return "quarantined"
	case v.Compared == 0:
		return "nothing compared"
	}
	return "different" // in number
}

func (c *cli) printVerdict(v migrate.Verdict, repaired bool) error {
	view := viewVerdict(v)
	if c.output == jsonForm {
		return c.printJSON(view)
	}
	for _, kind := range []struct {
		name string
		keys []string
	}{{"missing", view.Missing}, {"different", view.Different}, {"extra", view.Extra}, {"unsettled", view.Unsettled}} {
		for _, k := range kind.keys {
			fmt.Fprintf(c.out, "%s %s\n", kind.name, k)
		}
	}
	_, err := fmt.Fprintf(c.out, "%s: %d compared, %d missing, %d different, %d extra, %d unsettled, %d quarantined\n",
		view.Verdict, v.Compared, len(v.Missing), len(v.Different), len(v.Extra), len(v.Unsettled), v.Quarantined)
	if err == nil && repaired && len(v.Missing)+len(v.Different)+len(v.Extra) > 0 {
		_, err = fmt.Fprintln(c.out, "mended; verify again")
	}
	return err
}
