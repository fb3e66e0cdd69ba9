package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tallystick/tallystick/sequence"
)

// printJSON prints v on one line.
func (c *cli) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printRecord prints a sequence, one field a line.
func (c *cli) printRecord(r sequence.Record) error {
	if c.output == jsonForm {
		b, err := recordJSON(r)
		if err != nil {
			return err
		}
		return c.printJSON(json.RawMessage(b))
	}
	d := r.Definition
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"name", d.Name},
		{"state", stateOf(r)},
		{"next", nextOf(r)},
		{"remaining", strconv.FormatUint(r.Remaining(), 10)},
		{"start", number(d.Start)},
		{"increment", number(d.Increment)},
		{"min", number(d.Min)},
		{"max", number(d.Max)},
		{"cycle", strconv.FormatBool(d.Cycle)},
		{"epoch", strconv.FormatUint(r.Epoch, 10)},
		{"definition version", strconv.FormatUint(uint64(r.Version), 10)},
		{"block size", fmt.Sprintf("%d to %d", d.BlockSize, d.MaxBlock)},
		{"server cache", fmt.Sprintf("at most %d", d.ServerCacheMax)},
		{"client cache", fmt.Sprintf("%d to %d, refilled at %s", d.ClientCacheMin, d.ClientCacheMax, threshold(d))},
		{"buffer", fmt.Sprintf("%d s", d.BufferSeconds)},
		{"owner", cmp.Or(d.Owner, "-")},
		{"labels", cmp.Or(labelsOf(d), "-")},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
	}
	return w.Flush()
}

// printChanged says in one line what a change led to.
func (c *cli) printChanged(did string, r sequence.Record) error {
	if c.output == jsonForm {
		return c.printRecord(r)
	}
	_, err := fmt.Fprintf(c.out, "%s %s: next %s, increment %d, remaining %d\n", did, r.Definition.Name, nextOf(r), r.Definition.Increment, r.Remaining())
	return err
}

func number(v int64) string { return strconv.FormatInt(v, 10) }

func nextOf(r sequence.Record) string {
	if next, ok := r.Upcoming(); ok {
		return number(next)
	}
	return "-"
}

// stateOf returns the state in one word.
func stateOf(r sequence.Record) string {
	if _, ok := r.Upcoming(); !ok {
		return "exhausted"
	}
	return string(r.State)
}

func threshold(d sequence.Definition) string {
	if d.MinThreshold == 0 {
		return "a fifth"
	}
	return number(d.MinThreshold)
}

func labelsOf(d sequence.Definition) string {
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(d.Labels)) {
		labels = append(labels, k+"="+d.Labels[k])
	}
	return strings.Join(labels, " ")
}

// A progress shows on a terminal how far long work has come.
type progress struct {
	c    *cli
	did  string
	all  int
	show bool
}

func (c *cli) progress(did string, all int) *progress {
	return &progress{c: c, did: did, all: all, show: terminal(c.err) && c.output == table}
}

func (p *progress) reach(n int) {
	if p.show && p.all > 0 {
		fmt.Fprintf(p.c.err, "\r%s %d of %d", p.did, n, p.all)
	} else if p.show {
		fmt.Fprintf(p.c.err, "\r%s %d", p.did, n)
	}
}

// end clears the line.
func (p *progress) end() {
	if p.show {
		fmt.Fprint(p.c.err, "\r\x1b[K")
	}
}

// quoteJSON returns s as a JSON string.
func quoteJSON(s string) []byte {
	b, _ := json.Marshal(s) // strings cannot fail
	return b
}
