package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/sequence"
)

const (
	maxNext  = 10_000_000 // values one command takes
	maxChunk = 100_000    // values one lease asks for: what an interruption burns at most
)

func newSeqNext(c *cli) *cobra.Command {
	var n int64
	cmd := &cobra.Command{
		Use:   "next NAME",
		Short: "Take values",
		Long: `Take values from a sequence and print them, one a line, in the order in which
they are handed out.

When the sequence ends before all are there, those that were left are printed
and the command fails.`,
		Example: `  tallystick seq next orders_seq
  tallystick seq next orders_seq -n 1000 > ids.txt`,
		Args:              names("NAME"),
		ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 1 || n > maxNext {
				return &usageError{err: fmt.Errorf("-n %d is out of range", n), field: "count", remedy: fmt.Sprintf("use 1 to %d", maxNext)}
			}
			return c.next(cmd, args[0], n)
		},
	}
	cmd.Flags().Int64VarP(&n, "number", "n", 1, "how `many`, at most 10000000")
	return cmd
}

func (c *cli) next(cmd *cobra.Command, name string, n int64) error {
	s, err := c.connect(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	out := bufio.NewWriterSize(c.out, 1<<16)
	t := taker{leaser: s, name: name, left: n, values: newValuePrinter(out, name, c.output)}
	for t.left > 0 && err == nil {
		err = c.takeOnce(cmd.Context(), &t)
	}
	if err = c.outcome(cmd.Context(), err); err != nil && t.left < n {
		err = partly(n-t.left, n, err)
	}
	if err == nil || t.left < n { // nothing rather than an empty object
		err = errors.Join(t.values.end(), out.Flush(), err)
	}
	return err
}

// partly says that only some of the values came.
func partly(got, want int64, err error) error {
	only := fmt.Sprintf("only %d of %d values", got, want)
	if e, ok := errors.AsType[*sequence.Error](err); ok {
		short := *e
		short.Message = only + ": " + e.Message
		return &short
	}
	return fmt.Errorf("%s: %w", only, err)
}

func (c *cli) takeOnce(ctx context.Context, t *taker) error {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	return t.take(ctx)
}

// A taker takes values of one sequence by leases.
type taker struct {
	leaser  sequence.Leaser
	name    string
	left    int64
	floor   *sequence.Floor
	version uint32
	values  *valuePrinter
}

// take takes one lease, waiting as the server asks while it is busy.
func (t *taker) take(ctx context.Context) error {
	for {
		err := t.lease(ctx)
		wait := retryAfter(err)
		if wait == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// retryAfter returns how long the server asks to wait, 0 if it does not.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*sequence.Error](err); ok && e.Code == sequence.CodeUnavailable {
		return e.RetryAfter
	}
	return 0
}

func (t *taker) lease(ctx context.Context) error {
	res, err := t.leaser.Lease(ctx, sequence.LeaseRequest{
		ClientID: "tallystick seq next",
		Items:    []sequence.LeaseItem{{Name: t.name, Count: min(t.left, maxChunk), Floor: t.floor, KnownVersion: t.version}},
	})
	switch {
	case err != nil:
		return err
	case len(res.Results) != 1:
		return fmt.Errorf("the server answered %d results for one sequence", len(res.Results))
	case res.Results[0].Err != nil:
		return res.Results[0].Err
	}
	return t.accept(res.Results[0])
}

func (t *taker) accept(r sequence.LeaseResult) error {
	if n := r.Count(); n < 1 || n > t.left {
		return fmt.Errorf("the server granted %d values where %d were asked for", n, t.left)
	}
	for _, run := range r.Runs {
		if run.Count == 0 {
			continue
		}
		if err := t.values.print(run); err != nil {
			return err
		}
		t.floor = &sequence.Floor{Epoch: r.Epoch, Last: run.Last()}
	}
	t.left -= r.Count()
	t.version = r.Version
	return nil
}

// A valuePrinter prints values, one a line or as a JSON list of strings.
type valuePrinter struct {
	out   io.Writer
	form  output
	first bool
	line  []byte
}

func newValuePrinter(out io.Writer, name string, form output) *valuePrinter {
	p := &valuePrinter{out: out, form: form, first: true}
	if form == jsonForm {
		fmt.Fprintf(out, `{"name":%s,"values":[`, quoteJSON(name))
	}
	return p
}

func (p *valuePrinter) print(run sequence.Run) error {
	for i := range run.Count {
		p.line = p.line[:0]
		if p.form == jsonForm {
			if !p.first {
				p.line = append(p.line, ',')
			}
			p.line = append(p.line, '"')
			p.line = append(strconv.AppendInt(p.line, run.At(i), 10), '"')
		} else {
			p.line = append(strconv.AppendInt(p.line, run.At(i), 10), '\n')
		}
		p.first = false
		if _, err := p.out.Write(p.line); err != nil {
			return err
		}
	}
	return nil
}

func (p *valuePrinter) end() error {
	if p.form != jsonForm {
		return nil
	}
	_, err := io.WriteString(p.out, "]}\n")
	return err
}
