package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/coupon"
)

func newCouponGenerate(c *cli) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "generate CAMPAIGN",
		Short: "Make a campaign's coupons",
		Long: `Begin to make a campaign's coupons and show how far that is. Asked again meanwhile
it shows the same work. With --wait it returns when all are there.`,
		Example: "  tallystick coupon generate 1 --wait",
		Args:    names("CAMPAIGN"),
		RunE: c.onID("campaign", func(ctx context.Context, s coupons, id int64) error {
			op, err := s.Generate(ctx, id)
			if err == nil && wait {
				op, err = c.await(ctx, s, op)
			}
			if err != nil {
				return err
			}
			return c.printOperation(op)
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when it is done")
	return cmd
}

// await returns an operation when it is done, and shows on a terminal how far it
// is.
func (c *cli) await(ctx context.Context, s coupons, op coupon.Operation) (coupon.Operation, error) {
	p := c.progress(op.Kind+"d", int(op.Total))
	defer p.end()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !op.Done {
		p.reach(int(op.Succeeded))
		select {
		case <-ctx.Done():
			return op, ctx.Err()
		case <-tick.C:
		}
		var err error
		if op, err = s.Operation(ctx, op.ID); err != nil {
			return op, err
		}
	}
	return op, nil
}

// printOperation prints long work. One that was refused fails the command.
func (c *cli) printOperation(op coupon.Operation) error {
	state := "under way"
	if op.Done {
		state = "done"
	}
	err := c.printOne(op,
		[2]string{"operation", strconv.FormatInt(op.ID, 10)}, [2]string{"kind", op.Kind}, [2]string{"state", state},
		[2]string{"coupons", fmt.Sprintf("%d of %d", op.Succeeded, op.Total)}, [2]string{"error", op.Error},
	)
	if err == nil && op.Error != "" {
		return failed("see docs/coupon.md", "operation %d ended with %s after %d of %d coupons", op.ID, op.Error, op.Succeeded, op.Total)
	}
	return err
}

func newCouponIssue(c *cli) *cobra.Command {
	var r coupon.IssueRequest
	var wait bool
	cmd := &cobra.Command{
		Use:   "issue CAMPAIGN",
		Short: "Issue coupons to an order",
		Long: `Issue coupons of a campaign to an order: up to 500 at once, more by an operation.
Without --user they are bearer coupons, which whoever has the code may redeem. The
batch number makes it happen once, however often the command runs. The coupons of
an operation are listed by GET /v1/orders/ORDER/coupons.`,
		Example: `  tallystick coupon issue 1 --batch b-2026-11 --order o-77 --count 100 -o json`,
		Args:    names("CAMPAIGN"),
		RunE: c.onID("campaign", func(ctx context.Context, s coupons, id int64) error {
			r.Campaign = id
			issue, err := s.Issue(ctx, r)
			if err != nil {
				return err
			}
			if issue.Operation == nil {
				return c.printCoupons(issue.Coupons)
			}
			op := *issue.Operation
			if wait {
				if op, err = c.await(ctx, s, op); err != nil {
					return err
				}
			}
			return c.printOperation(op)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.Batch, "batch", "", "business `number` of this issue, once per campaign")
	f.StringVar(&r.Order, "order", "", "`order` that gets them")
	f.Int64Var(&r.Count, "count", 1, "`number` of coupons, at most 1000000")
	f.StringVar(&r.User, "user", "", "`user` that gets them (default: bearer coupons)")
	f.BoolVar(&wait, "wait", false, "return when a large issue is done")
	need(f, "batch", "order")
	return cmd
}

// printCoupons prints a list of coupons.
func (c *cli) printCoupons(all []coupon.Coupon) error {
	return printMany(c, all, "ID\tCODE\tSTATUS\tVALUE\tEXPIRES", func(k coupon.Coupon) string {
		return fmt.Sprintf("%d\t%s\t%s\t%s\t%s", k.ID, k.Code, k.At(time.Now()), money(k.Value), instant(k.Valid.Until))
	})
}
