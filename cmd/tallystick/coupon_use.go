package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/coupon"
)

// callFlags adds the flags of who asks for what; order says what an order does.
func callFlags(cmd *cobra.Command, call *coupon.Call, order string, names ...string) {
	f := cmd.Flags()
	for _, name := range names {
		switch name {
		case "user":
			f.StringVar(&call.User, "user", "", "`user` whose coupon it is; a bearer coupon is nobody's")
		case "order":
			f.StringVar(&call.Order, "order", "", "`order` that "+order)
		case "request":
			f.StringVar(&call.Request, "request", "", "business `number` that makes it happen once")
		}
	}
}

func newCouponClaim(c *cli) *cobra.Command {
	var call coupon.Call
	cmd := &cobra.Command{
		Use:     "claim CAMPAIGN",
		Short:   "Give a user a coupon of a campaign",
		Long:    "Give a user a coupon of a campaign. Asked again with the same request it shows the same coupon.",
		Example: "  tallystick coupon claim 1 --user ann --request r1",
		Args:    names("CAMPAIGN"),
		RunE: c.onID("campaign", func(ctx context.Context, s coupons, id int64) error {
			return c.printResult(s.Claim(ctx, id, call))
		}),
	}
	callFlags(cmd, &call, "", "user", "request")
	need(cmd.Flags(), "user", "request")
	return cmd
}

// onCoupon returns a command that does something to the coupon that its argument
// names.
func onCoupon(c *cli, use, short, long string, do func(context.Context, coupons, couponRef) (coupon.Result, error)) *cobra.Command {
	flags := "--user ann --order o-1"
	if use == "bind" {
		flags = "--user ann --request b-1"
	}
	return &cobra.Command{
		Use:     use + " CODE|ID",
		Short:   short,
		Long:    long,
		Example: "  tallystick coupon " + use + " 7ZKQ-9XW2-4HBD-M8TE " + flags,
		Args:    names("CODE|ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withCoupons(cmd, func(ctx context.Context, s coupons) error { return c.printResult(do(ctx, s, aCoupon(args[0]))) })
		},
	}
}

func newCouponBind(c *cli) *cobra.Command {
	var call coupon.Call
	cmd := onCoupon(c, "bind", "Give a bearer coupon to a user", "Give a bearer coupon to a user. It does not count towards the campaign's limit.",
		func(ctx context.Context, s coupons, r couponRef) (coupon.Result, error) { return s.Bind(ctx, r, call) })
	callFlags(cmd, &call, "", "user", "request")
	need(cmd.Flags(), "user", "request")
	return cmd
}

func newCouponReserve(c *cli) *cobra.Command {
	var call coupon.Call
	var ttl time.Duration
	cmd := onCoupon(c, "reserve", "Hold a coupon for an order", "Hold a coupon for an order, so that no other redeems it while this one is being paid.",
		func(ctx context.Context, s coupons, r couponRef) (coupon.Result, error) {
			if ttl < time.Second || ttl > coupon.MaxHold || ttl%time.Second != 0 {
				return coupon.Result{}, outOfRange("ttl", "use whole seconds, 1s to 24h")
			}
			return s.Reserve(ctx, r, call, ttl)
		})
	callFlags(cmd, &call, "holds it", "user", "order")
	need(cmd.Flags(), "order")
	cmd.Flags().DurationVar(&ttl, "ttl", coupon.DefaultHold, "how long, 24h at most")
	return cmd
}

func newCouponRedeem(c *cli) *cobra.Command {
	var call coupon.Call
	cmd := onCoupon(c, "redeem", "Use a coupon for an order", "Use a coupon for an order, once. Asked again with the same order it shows the first result.",
		func(ctx context.Context, s coupons, r couponRef) (coupon.Result, error) {
			return s.Redeem(ctx, r, call)
		})
	callFlags(cmd, &call, "uses it", "user", "order")
	need(cmd.Flags(), "order")
	return cmd
}

func newCouponRelease(c *cli) *cobra.Command {
	var call coupon.Call
	cmd := onCoupon(c, "release", "Give up an order's hold", "Give up an order's hold of a coupon.",
		func(ctx context.Context, s coupons, r couponRef) (coupon.Result, error) {
			return s.Release(ctx, r, call)
		})
	callFlags(cmd, &call, "holds it", "user", "order")
	need(cmd.Flags(), "order")
	return cmd
}

func newCouponVoid(c *cli) *cobra.Command {
	var call coupon.Call
	cmd := &cobra.Command{
		Use:   "void ID",
		Short: "Take an order's redemption back",
		Long: `Take an order's redemption back, by the campaign's void policy. The request makes
it happen once. It takes the coupon's id, which "coupon lookup" shows.`,
		Example: "  tallystick coupon void 385903515918172238 --order o-1 --request v-1",
		Args:    names("ID"),
		RunE: c.onID("coupon", func(ctx context.Context, s coupons, id int64) error {
			return c.printResult(s.Void(ctx, coupon.ID(id), call))
		}),
	}
	callFlags(cmd, &call, "used it", "order", "request")
	need(cmd.Flags(), "order", "request")
	return cmd
}
