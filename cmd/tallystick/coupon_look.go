package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/coupon"
)

func newCouponLookup(c *cli) *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use:     "lookup CODE|ID",
		Short:   "Show a coupon",
		Long:    "Show a coupon. With --user it is shown only if that user may see it.",
		Example: "  tallystick coupon lookup 7ZKQ-9XW2-4HBD-M8TE",
		Args:    names("CODE|ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withCoupons(cmd, func(ctx context.Context, s coupons) error {
				got, err := s.Get(ctx, aCoupon(args[0]), user)
				if err != nil {
					return err
				}
				return c.printCoupon(got, got)
			})
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "`user` who asks (default: the platform itself)")
	return cmd
}

func newCouponHistory(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "history ID",
		Short:   "Show what happened to a coupon",
		Long:    "Show what happened to a coupon, the oldest change first. ACTOR is the token that was used, if any.",
		Example: "  tallystick coupon history 385903515918172238",
		Args:    names("ID"),
		RunE: c.onID("coupon", func(ctx context.Context, s coupons, id int64) error {
			events, err := s.History(ctx, coupon.ID(id))
			if err != nil {
				return err
			}
			return printMany(c, events, "VERSION\tEVENT\tAT\tUSER\tORDER\tREQUEST\tACTOR", func(e coupon.Event) string {
				return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%s\t%s", e.Version, e.Type, instant(e.At), e.User, e.Order, e.Request, e.Actor)
			})
		}),
	}
}

func newCouponWallet(c *cli) *cobra.Command {
	var status []string
	var q coupon.WalletQuery
	var limit int
	cmd := &cobra.Command{
		Use:   "wallet USER",
		Short: "List a user's coupons",
		Long: `List a user's coupons, those that expire first in front. What happened to one on
another shard than the user's is seen a moment later; --fresh looks it up.`,
		Example: "  tallystick coupon wallet ann --status ISSUED",
		Args:    names("USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.User, q.Size = args[0], min(limit, coupon.MaxPage)
			for _, name := range status {
				s, ok := coupon.ParseStatus(name)
				if !ok || !slices.Contains(walletStatuses, name) {
					return &usageError{err: fmt.Errorf("--status %q is not known", name), field: "status", remedy: "use some of " + strings.Join(walletStatuses, ",")}
				}
				q.Status = append(q.Status, s)
			}
			if limit < 1 {
				return outOfRange("limit", "use at least 1")
			}
			return c.withCoupons(cmd, func(ctx context.Context, s coupons) error {
				all, err := wholeWallet(ctx, s, q, limit)
				if err != nil {
					return err
				}
				return c.printCoupons(all)
			})
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&status, "status", nil, "only coupons that are now one of these `states`: ISSUED,RESERVED,REDEEMED,EXPIRED")
	f.BoolVar(&q.Fresh, "fresh", false, "look up those on other shards")
	f.IntVar(&limit, "limit", 1000, "`number` of coupons at most")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(walletStatuses, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// walletStatuses are what a coupon in a wallet can be.
var walletStatuses = []string{"ISSUED", "RESERVED", "REDEEMED", "EXPIRED"}

// wholeWallet returns a user's coupons, page by page, limit at most.
func wholeWallet(ctx context.Context, s coupons, q coupon.WalletQuery, limit int) ([]coupon.Coupon, error) {
	var all []coupon.Coupon
	for token := ""; ; {
		page, next, err := s.Wallet(ctx, q, token)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); next == "" || len(all) >= limit {
			return all[:min(len(all), limit)], nil
		}
		token = next
	}
}
