package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/migrate"
)

func newMigratePlan(p *planFile) *cobra.Command {
	return &cobra.Command{
		Use:   "plan",
		Short: "Look at everything before the first write",
		Long: `Look at the plan, the source, the sink and the state as before the first write,
and say what has to be mended, what to think about, and what the copy will take.
Nothing is written. A refusal, after which nothing would be started, ends it with
exit code 1.

The time is what one pod takes if a request to the sink lasts 5 to 20 ms.`,
		Example: "  tallystick migrate plan -f plan.yaml",
		Args:    names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := p.read()
			if err != nil {
				return err
			}
			return interrupted(cmd.Context(), p.c.lookAhead(cmd.Context(), plan))
		},
	}
}

// lookAhead prints the outlook of a plan.
func (c *cli) lookAhead(ctx context.Context, plan migrate.Plan) (err error) {
	j := &job{plan: plan}
	defer func() { err = closed(err, j) }()
	err = j.open(ctx, allParts, nil)
	var o outlook
	switch refusals := findingsIn(err); {
	case len(refusals) > 0: // what cannot be opened is found out as much as what can be looked at
		o = outlook{Findings: refusals, Seconds: []int64{}}
	case err != nil:
		return err
	default:
		if o, err = j.local.Plan(ctx); err != nil {
			return err
		}
	}
	if err := c.printOutlook(plan, o); err != nil {
		return err
	}
	if n := refusalsOf(o); n > 0 {
		return &usageless{fmt.Sprintf("the plan is refused: %d to mend", n), "mend what is named refusal above"}
	}
	return nil
}

// findingsIn returns the findings that err joins.
func findingsIn(err error) []migrate.Finding {
	if f, ok := err.(migrate.Finding); ok {
		return []migrate.Finding{f}
	}
	var found []migrate.Finding
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			found = append(found, findingsIn(part)...)
		}
	case interface{ Unwrap() error }:
		found = findingsIn(e.Unwrap())
	}
	return found
}

func refusalsOf(o outlook) (n int) {
	for _, f := range o.Findings {
		if f.Severity == migrate.Refusal {
			n++
		}
	}
	return n
}

func (c *cli) printOutlook(plan migrate.Plan, o outlook) error {
	if c.output == jsonForm {
		return c.printJSON(struct {
			Name string `json:"name"`
			Hash string `json:"plan"`
			outlook
		}{plan.Name, plan.Hash(), o})
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"plan", plan.Name + " " + plan.Hash()},
		{"slots", fmt.Sprintf("%d, %s", o.Slots, plan.Slots.Order)},
		{"rows", fmt.Sprintf("about %d, %s", o.Rows, sizeText(o.Bytes))},
		{"write units", fmt.Sprintf("about %d", o.WriteUnits)},
		{"time", spanText(o.Seconds) + fmt.Sprintf(" for one pod with %d workers", plan.Workers)},
	} {
		if refusalsOf(o) == 0 || row[0] == "plan" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range o.Findings {
		if _, err := fmt.Fprintf(c.out, "%s: %s\n", severityText(plan, f), c.secrets.mask(f.Error())); err != nil {
			return err
		}
	}
	return nil
}

// severityText returns how bad a finding is and, where something is to be done,
// the line of the plan.
func severityText(plan migrate.Plan, f migrate.Finding) string {
	if f.Severity == migrate.Note || f.Field == "" {
		return string(f.Severity)
	}
	return fmt.Sprintf("%s, line %d", f.Severity, plan.Line(f.Field))
}
