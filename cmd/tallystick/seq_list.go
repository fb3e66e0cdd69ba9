package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/sequence"
)

func newSeqList(c *cli) *cobra.Command {
	var (
		req sequence.ListRequest
		all bool
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sequences",
		Long:  `List sequences, a page at a time or all of them.`,
		Example: `  tallystick seq list
  tallystick seq list --prefix orders_ --all
  tallystick seq list --page-size 1000 -o json`,
		Args: names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if req.PageSize < 1 || req.PageSize > sequence.MaxPageSize {
				return &usageError{
					err:   fmt.Errorf("--page-size %d is out of range", req.PageSize),
					field: "page_size", remedy: fmt.Sprintf("use 1 to %d", sequence.MaxPageSize),
				}
			}
			if all && !cmd.Flags().Changed("page-size") {
				req.PageSize = sequence.MaxPageSize
			}
			return c.list(cmd, req, all)
		},
	}
	cmd.Flags().StringVar(&req.Prefix, "prefix", "", "only names that begin with this")
	cmd.Flags().IntVar(&req.PageSize, "page-size", 100, "how `many` a page has, at most 1000")
	cmd.Flags().StringVar(&req.PageToken, "page-token", "", "`token` of the next page, from the page before")
	cmd.Flags().BoolVar(&all, "all", false, "all pages")
	return cmd
}

func (c *cli) list(cmd *cobra.Command, req sequence.ListRequest, all bool) error {
	s, err := c.connect(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	lines := c.lister()
	for {
		page, err := c.page(cmd.Context(), s, req)
		if err != nil {
			return c.outcome(cmd.Context(), err)
		}
		if err := lines.add(page.Records); err != nil {
			return err
		}
		if page.NextPageToken == "" || !all {
			return lines.end(page.NextPageToken)
		}
		req.PageToken = page.NextPageToken
	}
}

func (c *cli) page(ctx context.Context, s service, req sequence.ListRequest) (sequence.ListResponse, error) {
	ctx, cancel := c.within(ctx, 0)
	defer cancel()
	return s.List(ctx, req)
}

// A lister prints sequences as they come.
type lister interface {
	add([]sequence.Record) error
	end(next string) error
}

func (c *cli) lister() lister {
	if c.output == jsonForm {
		return &jsonList{c: c, Sequences: []json.RawMessage{}}
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tNEXT\tINCREMENT\tREMAINING\tEPOCH\tSTATE")
	return &tableList{c: c, w: w}
}

type tableList struct {
	c *cli
	w *tabwriter.Writer
}

func (l *tableList) add(records []sequence.Record) error {
	for _, r := range records {
		fmt.Fprintf(l.w, "%s\t%s\t%d\t%d\t%d\t%s\n", r.Definition.Name, nextOf(r), r.Definition.Increment, r.Remaining(), r.Epoch, stateOf(r))
	}
	return nil
}

func (l *tableList) end(next string) error {
	if err := l.w.Flush(); err != nil {
		return err
	}
	if next != "" {
		fmt.Fprintf(l.c.err, "There are more: --all lists all, --page-token %s the next page.\n", next)
	}
	return nil
}

type jsonList struct {
	c         *cli
	Sequences []json.RawMessage `json:"sequences"`
	Next      string            `json:"next_page_token"`
}

func (l *jsonList) add(records []sequence.Record) error {
	for _, r := range records {
		b, err := recordJSON(r)
		if err != nil {
			return err
		}
		l.Sequences = append(l.Sequences, b)
	}
	return nil
}

func (l *jsonList) end(next string) error {
	l.Next = next
	return l.c.printJSON(l)
}
