package main

import (
	"cmp"
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/migrate"
)

func newMigrateStatus(p *planFile) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how far it has come",
		Example: `  tallystick migrate status -f plan.yaml
  tallystick migrate status -f plan.yaml -o json | jq .slots`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.within(cmd, onlyState, func(ctx context.Context, j *job) error {
				r, err := j.local.Status(ctx)
				if err != nil {
					return err
				}
				return p.c.printReport(j.plan, r)
			})
		},
	}
}

// A statusView is a report as it is printed.
type statusView struct {
	migrate.Report
	Verdict *verdictCounts `json:"verdict,omitempty"`
}

// verdictCounts is a verdict without the keys, which verify prints.
type verdictCounts struct {
	Verdict     string    `json:"verdict"`
	Mode        string    `json:"mode"`
	Compared    int64     `json:"compared"`
	Missing     int64     `json:"missing"`
	Different   int64     `json:"different"`
	Extra       int64     `json:"extra"`
	Unsettled   int64     `json:"unsettled"`
	Quarantined int64     `json:"quarantined"`
	At          time.Time `json:"at"`
}

func viewReport(r migrate.Report) statusView {
	r.Status = cmp.Or(r.Status, migrate.NotStarted)
	view := statusView{Report: r}
	if v := r.Verdict; v != nil {
		view.Verdict = &verdictCounts{
			Verdict: verdictWord(*v), Mode: v.Mode, Compared: v.Compared, Missing: v.Totals.Missing, Different: v.Totals.Different,
			Extra: v.Totals.Extra, Unsettled: v.Totals.Unsettled, Quarantined: v.Quarantined, At: v.At,
		}
	}
	return view
}

func (c *cli) printReport(plan migrate.Plan, r migrate.Report) error {
	if c.output == jsonForm {
		return c.printJSON(viewReport(r))
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"name", plan.Name},
		{"status", fmt.Sprintf("%s, generation %d", viewReport(r).Status, r.Generation)},
		{"phase", cmp.Or(string(r.Phase), "-")},
		{"slots", fmt.Sprintf("%d of %d finished, %d running", r.Slots.Finished, r.Slots.Total, r.Slots.Running)},
		{"rows", fmt.Sprintf("%d read, %d written, %d already newer, %d already ours, %d quarantined",
			r.Rows.Read, r.Rows.Written, r.Rows.AlreadyNewer, r.Rows.AlreadyOurs, r.Rows.Quarantined)},
		{"last slot", cmp.Or(r.LastSlot, "-")},
		{"time left", spanText(r.ETA)},
		{"keeper", cmp.Or(r.Keeper, "-")},
		{"verdict", verdictText(r.Verdict)},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
	}
	if err := w.Flush(); err != nil || len(r.Workers) == 0 {
		return err
	}
	return c.printWorkers(r.Workers)
}

func (c *cli) printWorkers(workers []migrate.HeldSlot) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nWORKER\tSLOT\tEPOCH\tROWS")
	for _, h := range workers {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", h.Worker, h.Slot, h.Epoch, h.Rows)
	}
	return w.Flush()
}

// verdictText returns a verdict in a few words.
func verdictText(v *migrate.Verdict) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%s, %s, %d compared, %s", verdictWord(*v), v.Mode, v.Compared, v.At.Format(time.RFC3339))
}
