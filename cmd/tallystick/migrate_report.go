package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/migrate"
)

// ledgerPage is how many lines of the ledger are read at once.
const ledgerPage = 500

func newMigrateReport(p *planFile) *cobra.Command {
	var quarantine bool
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Export what was done: a line for each finished slot",
		Long: `Export the ledger: a line for each finished slot with its rows, what became of
them, and the sum of their digests. With -o json each line is a JSON object.
--quarantine lists the rows in quarantine instead, with their reasons.`,
		Example: `  tallystick migrate report -f plan.yaml
  tallystick migrate report -f plan.yaml -o json > ledger.ndjson
  tallystick migrate report -f plan.yaml --quarantine`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.within(cmd, onlyState, func(ctx context.Context, j *job) error {
				if quarantine {
					return p.c.reportQuarantine(ctx, j)
				}
				return p.c.reportLedger(ctx, j)
			})
		},
	}
	cmd.Flags().BoolVar(&quarantine, "quarantine", false, "list the rows in quarantine")
	return cmd
}

func (c *cli) reportLedger(ctx context.Context, j *job) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	if c.output == table {
		fmt.Fprintln(w, "SLOT\tPASS\tEMPTY\tREAD\tWRITTEN\tNEWER\tOURS\tQUARANTINED\tDIGEST\tEPOCH\tAT")
	}
	for from := int64(0); ; {
		lines, err := j.local.Ledger(ctx, from, ledgerPage)
		if err != nil {
			return err
		}
		for _, l := range lines {
			if err := c.printLine(w, l); err != nil {
				return err
			}
			from = l.Number + 1
		}
		if len(lines) == 0 {
			return w.Flush()
		}
	}
}

func (c *cli) printLine(w *tabwriter.Writer, l migrate.LedgerLine) error {
	if c.output == jsonForm {
		return c.printJSON(l)
	}
	_, err := fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%d\t%s\n", l.Slot, l.Pass, l.Empty, l.Counts.Read, l.Counts.Written,
		l.Counts.AlreadyNewer, l.Counts.AlreadyOurs, l.Counts.Quarantined, l.Digest, l.Epoch, l.At.Format(time.RFC3339))
	return err
}

// A quarantineView is a row in quarantine as it is printed.
type quarantineView struct {
	Key    string    `json:"key"`
	Reason string    `json:"reason"`
	Slot   string    `json:"slot"`
	At     time.Time `json:"at"`
}

func viewQuarantined(q migrate.Quarantined) quarantineView {
	return quarantineView{q.Key.String(), q.Reason, q.Slot, q.At}
}

func (c *cli) reportQuarantine(ctx context.Context, j *job) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	if c.output == table {
		fmt.Fprintln(w, "KEY\tSLOT\tREASON")
	}
	err := j.eachQuarantined(ctx, func(q migrate.Quarantined) error {
		v := viewQuarantined(q)
		if c.output == jsonForm {
			return c.printJSON(v)
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\n", v.Key, v.Slot, v.Reason)
		return err
	})
	if err != nil {
		return err
	}
	return w.Flush()
}
