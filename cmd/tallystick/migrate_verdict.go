package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// verdictExit ends a verification with its exit code.
func (c *cli) verdictExit(ctx context.Context, j *job, v migrate.Verdict) error {
	if !v.Clean {
		return errDiffer
	}
	last, ok, err := j.state.Verdict(ctx)
	if err == nil && ok && !last.Clean {
		fmt.Fprintf(c.err, "The verdict of %s stays %s until a full verification that begins after it is clean.\n", last.At.Format(time.RFC3339), verdictWord(last))
	}
	return err
}

// A verdictView is a verdict as it is printed.
type verdictView struct {
	Verdict     string         `json:"verdict"`
	Mode        string         `json:"mode"`
	Compared    int64          `json:"compared"`
	Resumed     int64          `json:"resumed,omitempty"`
	SourceRows  *int64         `json:"source_rows,omitempty"`
	SinkRows    *int64         `json:"sink_rows,omitempty"`
	Noted       int64          `json:"noted,omitempty"`
	Missing     []string       `json:"missing"`
	Different   []string       `json:"different"`
	Extra       []string       `json:"extra"`
	Unsettled   []string       `json:"unsettled"`
	Unmended    []unmendedView `json:"unmended,omitempty"`
	Totals      migrate.Totals `json:"totals"`
	Quarantined int64          `json:"quarantined"`
	Plan        string         `json:"plan"`
	Since       time.Time      `json:"since"`
	At          time.Time      `json:"at"`
}

// An unmendedView is a difference that --repair could not mend, and why.
type unmendedView struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

func viewUnmended(all []migrate.Unmended) []unmendedView {
	views := make([]unmendedView, len(all))
	for i, u := range all {
		views[i] = unmendedView{u.Key.String(), u.Reason}
	}
	return views
}

func viewVerdict(v migrate.Verdict) verdictView {
	view := verdictView{
		Verdict: verdictWord(v), Mode: v.Mode, Compared: v.Compared, Resumed: v.Resumed,
		Noted: v.Noted, Missing: keyWords(v.Missing), Different: keyWords(v.Different), Extra: keyWords(v.Extra), Unsettled: keyWords(v.Unsettled),
		Unmended: viewUnmended(v.Unmended), Totals: v.Totals, Quarantined: v.Quarantined, Plan: v.Plan, Since: v.Since, At: v.At,
	}
	if v.Mode == "counts" {
		view.SourceRows, view.SinkRows = &v.SourceRows, &v.SinkRows
	}
	return view
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
	case len(v.Missing)+len(v.Different)+len(v.Extra) > 0, v.SourceRows != v.SinkRows:
		return "different"
	case len(v.Unsettled) > 0:
		return "unsettled"
	case v.Quarantined > 0:
		return "quarantined"
	}
	return "nothing compared"
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
	_, err := fmt.Fprintf(c.out, "%s: %s, %d quarantined\n", view.Verdict, verdictFigures(v), v.Quarantined)
	if err == nil && repaired {
		err = c.printMended(v)
	}
	return err
}

// printMended says what a repair has mended and what not.
func (c *cli) printMended(v migrate.Verdict) (err error) {
	for _, u := range v.Unmended {
		fmt.Fprintf(c.out, "not mended %s: %s\n", u.Key, u.Reason)
	}
	switch n := len(v.Missing) + len(v.Different) + len(v.Extra); {
	case n == 0:
	case len(v.Unmended) == 0:
		_, err = fmt.Fprintln(c.out, "mended; verify again")
	default:
		_, err = fmt.Fprintf(c.out, "%s; verify again\n", figure(v.Totals.Unmended, len(v.Unmended), "not mended"))
	}
	return err
}

// verdictFigures returns how many rows are what.
func verdictFigures(v migrate.Verdict) string {
	t := v.Totals
	if v.Mode == "counts" {
		figures := fmt.Sprintf("%d rows in the source, %d in the sink", v.SourceRows, v.SinkRows)
		if v.Noted > 0 {
			figures += fmt.Sprintf(", %d with a note of which %d not equal", v.Noted, t.Missing+t.Different+t.Extra+t.Unsettled)
		}
		return figures
	}
	return fmt.Sprintf("%d compared, %s, %s, %s, %s", v.Compared, figure(t.Missing, len(v.Missing), "missing"), figure(t.Different, len(v.Different), "different"),
		figure(t.Extra, len(v.Extra), "extra"), figure(t.Unsettled, len(v.Unsettled), "unsettled"))
}

// figure returns how many rows are what, of which so many are listed.
func figure(total int64, listed int, what string) string {
	if total > int64(listed) {
		return fmt.Sprintf("%d %s (first %d listed)", total, what, listed)
	}
	return fmt.Sprintf("%d %s", total, what)
}
