package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitDiffer = 3 // differences, or rows in quarantine

	exitInterrupted = 130 // while it asked, or by a second signal; as shells have it
)

// A cli is one run of the command line: where it reads and prints, and what
// the flags say that clients of a server share.
type cli struct {
	program  string // as it was typed
	in       io.Reader
	out, err io.Writer

	remote  remote
	output  output
	secrets secrets // never printed
	begun   bool    // the command line was understood
}

// run runs one command line and returns its exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()

	c := &cli{program: args[0], in: in, out: out, err: errOut, output: outputOf(args)}
	root := newRoot(c)
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errDiffer):
		return exitDiffer
	case errors.Is(err, errInterrupted):
		c.report(err, false)
		return exitInterrupted
	}
	usage := !c.begun || isUsage(err)
	c.report(err, usage)
	if usage {
		return exitUsage
	}
	return exitFailed
}

// echoTime is how long after a signal another one counts as the same:
// timeout(1) and some supervisors send it to the process and to its group.
const echoTime = 300 * time.Millisecond

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. The
// second ends the process at once.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		first := time.Now()
		cancel()
		for time.Since(first) < echoTime {
			<-signals
		}
		os.Exit(exitInterrupted)
	}()
	return ctx, cancel
}

func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:   "tallystick",
		Short: "Keys, migrations and coupons beyond one database",
		Long: `Tallystick is what a team needs that outgrows its one database: sequences without
a round trip for each value, migrations that lose no row, and coupons that are
redeemed exactly once.

Start a server, then take values from it:

  tallystick serve
  tallystick seq create orders_seq --start 1001 --increment 5
  tallystick seq next orders_seq -n 5

Clients find the server by --server or TALLYSTICK_SERVER and identify
themselves with the token in TALLYSTICK_TOKEN or --token-file.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 differences or rows in quarantine.`,
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { c.begun = true },
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.AddCommand(newServe(c), newSeq(c), newMigrate(c), newCoupon(c), newShard(c), newToken(c), newVersion(c))
	root.Version = version
	root.SetVersionTemplate("tallystick {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd("completion") // now, so that a shell it does not know is wrong usage
	if cmd, _, err := root.Find([]string{"completion"}); err == nil {
		group(cmd)
	}
	inOrder(group(root))
	return root
}

// inOrder makes help list flags as they were defined: related ones together.
func inOrder(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.PersistentFlags().SortFlags = false
	for _, sub := range cmd.Commands() {
		inOrder(sub)
	}
}

// group makes a command that only holds others: alone it prints its help, and
// a word that is none of them is wrong usage.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return notCommand(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// notCommand returns the error for a word that is no command of cmd.
func notCommand(cmd *cobra.Command, word string) error {
	wrong := &usageError{err: fmt.Errorf("%q is no command of `%s`", word, cmd.CommandPath())}
	for cmd.SuggestionsMinimumDistance = 1; cmd.SuggestionsMinimumDistance <= 2; cmd.SuggestionsMinimumDistance++ {
		if similar := cmd.SuggestionsFor(word); len(similar) > 0 {
			wrong.remedy = fmt.Sprintf("did you mean %q?", similar[0])
			break
		}
	}
	return wrong
}

// names checks that the command got one argument for each name.
func names(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("%s is missing", names[len(args)])
		case len(args) > len(names):
			return usagef("%q is one argument too many", args[len(names)])
		}
		return nil
	}
}

// terminal reports whether f is a terminal.
func terminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// within returns ctx with the deadline that --timeout asks for.
func (c *cli) within(ctx context.Context, least time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(c.remote.timeout, least))
}
