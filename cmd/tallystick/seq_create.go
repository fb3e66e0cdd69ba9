package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/sequence"
)

// createBatch is how many sequences one call creates: few enough to show
// progress and to answer in time on a slow store.
const createBatch = 1_000

// maxReported is how many refused sequences of a batch are told on the
// terminal; -o json tells all.
const maxReported = 20

func newSeqCreate(c *cli) *cobra.Command {
	var (
		flags specFlags
		file  string
		reuse bool
	)
	cmd := &cobra.Command{
		Use:   "create {NAME | --file FILE}",
		Short: "Create sequences",
		Long: `Create one sequence, or many from a file. What is left out has PostgreSQL's
defaults: ascending from 1 in steps of 1.

A name that was deleted continues beyond its old values, unless --reuse-values
lets it begin at its start.

The file has one definition per line in JSON, or a list of them in YAML, with
the names that "seq get -o json" prints. "-" is standard input. A sequence that
is refused does not stop the others.`,
		Example: `  tallystick seq create orders_seq
  tallystick seq create orders_seq --start 1001 --increment 5
  tallystick seq create tickets --min 1 --max 999999 --cycle
  tallystick seq create countdown --descending --start 0 --min -100 --max 0
  echo '{"name":"a_seq","start":100}' | tallystick seq create --file -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				if len(args) > 0 {
					return &usageError{err: errors.New("NAME and --file exclude each other"), remedy: "write the names into the file"}
				}
				if given := flags.firstGiven(cmd); given != "" {
					return &usageError{err: fmt.Errorf("--%s and --file exclude each other", given), remedy: "write it into the file"}
				}
				return c.createFrom(cmd, file, reuse)
			}
			if err := names("NAME (or --file)")(cmd, args); err != nil {
				return err
			}
			spec, err := flags.said(cmd, args[0])
			if err != nil {
				return err
			}
			return c.with(cmd, func(ctx context.Context, s service) error { return c.createOne(ctx, s, spec, reuse) })
		},
	}
	flags.add(cmd)
	tellDefaults(cmd)
	cmd.Flags().StringVar(&file, "file", "", "create what this `file` defines; - is standard input")
	cmd.Flags().BoolVar(&reuse, "reuse-values", false, "let a deleted name begin at its start again: values repeat")
	return cmd
}

func (c *cli) createOne(ctx context.Context, s service, spec sequence.Spec, reuse bool) error {
	results, err := s.Create(ctx, sequence.CreateRequest{Specs: []sequence.Spec{spec}, ReuseValues: reuse})
	if err != nil {
		return err
	}
	if len(results) != 1 {
		return fmt.Errorf("the server answered %d results for one sequence", len(results))
	}
	if e := results[0].Err; e != nil {
		return e
	}
	return c.printChanged("created", results[0].Record)
}

// createFrom creates what a file defines, a batch at a time.
func (c *cli) createFrom(cmd *cobra.Command, file string, reuse bool) error {
	specs, err := c.readSpecs(file)
	if err != nil {
		return err
	}
	s, err := c.connect(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	done := c.progress("created", len(specs))
	var results []sequence.CreateResult
	for len(results) < len(specs) && err == nil {
		batch := specs[len(results):min(len(results)+createBatch, len(specs))]
		var more []sequence.CreateResult
		more, err = c.createBatch(cmd.Context(), s, sequence.CreateRequest{Specs: batch, ReuseValues: reuse})
		results = append(results, more...)
		done.reach(len(results))
	}
	done.end()
	printed := c.printCreated(specs, results)
	return cmp.Or(c.outcome(cmd.Context(), err), printed)
}

func (c *cli) createBatch(ctx context.Context, s service, req sequence.CreateRequest) ([]sequence.CreateResult, error) {
	ctx, cancel := c.within(ctx, batchTimeout)
	defer cancel()
	results, err := s.Create(ctx, req)
	if err == nil && len(results) != len(req.Specs) {
		err = fmt.Errorf("the server answered %d results for %d sequences", len(results), len(req.Specs))
	}
	return results, err
}

// printCreated tells what became of each sequence, and fails if one was
// refused.
func (c *cli) printCreated(specs []sequence.Spec, results []sequence.CreateResult) error {
	if c.output == jsonForm {
		return c.printCreatedJSON(specs, results)
	}
	refused := 0
	for i, r := range results {
		if r.Err == nil {
			continue
		}
		if refused++; refused <= maxReported {
			c.printFailure(named(specs[i].Name, describeCoded(r.Err)))
		}
	}
	if refused > maxReported {
		fmt.Fprintf(c.err, "tallystick: and %d more\n", refused-maxReported)
	}
	fmt.Fprintf(c.out, "created %d of %d sequences\n", len(results)-refused, len(specs))
	if refused > 0 {
		return errReported
	}
	return nil
}

// named puts the name of a sequence before the failure, unless it has it.
func named(name string, f failure) failure {
	if quoted := fmt.Sprintf("%q", name); !strings.Contains(f.Message, quoted) {
		f.Message = quoted + ": " + f.Message
	}
	return f
}

func (c *cli) printCreatedJSON(specs []sequence.Spec, results []sequence.CreateResult) error {
	type entry struct {
		Name     string          `json:"name"`
		Sequence json.RawMessage `json:"sequence,omitempty"`
		Error    *failure        `json:"error,omitempty"`
	}
	entries, refused := make([]entry, len(results)), 0
	for i, r := range results {
		entries[i].Name = specs[i].Name
		if r.Err != nil {
			entries[i].Error = new(describeCoded(r.Err))
			refused++
			continue
		}
		b, err := recordJSON(r.Record)
		if err != nil {
			return err
		}
		entries[i].Sequence = b
	}
	if err := c.printJSON(map[string]any{"results": entries}); err != nil {
		return err
	}
	if refused > 0 {
		return failed("see the items with an error", "%d of %d sequences were not created", refused, len(specs))
	}
	return nil
}
