package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/internal/settings"
	"github.com/tallystick/tallystick/sequence"
)

func newCoupon(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "coupon",
		Short: "Run campaigns, and issue, claim and redeem coupons",
		Long: `Run campaigns, and issue, claim and redeem coupons. With -o json each coupon,
campaign or event is a line of its own.`,
		Example: `  tallystick coupon campaign create spring --total 10000 --amount 500 --currency EUR --time-zone Europe/Berlin --valid-days 30
  tallystick coupon generate 1 --wait
  tallystick coupon claim 1 --user ann --request r1
  tallystick coupon redeem 7ZKQ-9XW2-4HBD-M8TE --user ann --order o-1`,
	}
	c.addRemoteFlags(cmd)
	cmd.AddCommand(
		newCouponCampaign(c), newCouponGenerate(c), newCouponIssue(c), newCouponClaim(c), newCouponBind(c),
		newCouponReserve(c), newCouponRedeem(c), newCouponRelease(c), newCouponVoid(c),
		newCouponLookup(c), newCouponHistory(c), newCouponWallet(c),
	)
	return group(cmd)
}

// withCoupons calls f with the server's coupons, in the time that --timeout
// allows.
func (c *cli) withCoupons(cmd *cobra.Command, f func(context.Context, coupons) error) error {
	if err := settings.Apply(cmd.Flags(), nil, "", os.Environ()); err != nil {
		return unset(err)
	}
	if err := missingFlags(cmd.Flags()); err != nil {
		return err
	}
	token, err := c.remote.token()
	if err != nil {
		return err
	}
	server, err := dialCoupons(c.remote, token)
	if err != nil {
		return undialled(err)
	}
	defer server.Close()
	return c.outcome(cmd.Context(), f(cmd.Context(), server))
}

// describeCoupon returns a refusal of a coupon in parts, and false if err is
// none.
func describeCoupon(err error) (failure, bool) {
	r, ok := errors.AsType[*coupon.Refusal](err)
	if !ok {
		return failure{}, false
	}
	f := failure{Code: sequence.Code(r.Code), Field: r.Field, Message: r.Message}
	switch {
	case r.Is(coupon.ErrUnavailable):
		f.Remedy = "check the code or id, and whose coupon it is"
	case r.Is(coupon.ErrPoolRefilling):
		f.Remedy = "a campaign's coupons come with `tallystick coupon generate`"
	case r.Is(coupon.ErrMismatch):
		f.Remedy = "repeat the command as it was, or give it a number of its own"
	case r.Retryable && !strings.Contains(r.Message, "again"):
		f.Remedy = "try again"
	}
	return f, true
}

// needed annotates flags that a command cannot do without.
const needed = "tallystick_needed"

// need makes flags such that a command cannot do without.
func need(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flag := f.Lookup(name)
		flag.Usage += " (required)"
		flag.Annotations = map[string][]string{needed: nil}
	}
}

// missingFlags returns what is wrong if flags that are needed say nothing.
func missingFlags(f *pflag.FlagSet) error {
	var missing []string
	f.VisitAll(func(flag *pflag.Flag) {
		if _, ok := flag.Annotations[needed]; ok && flag.Value.String() == flag.DefValue {
			missing = append(missing, flag.Name)
		}
	})
	if len(missing) == 0 {
		return nil
	}
	return &usageError{err: fmt.Errorf("missing: --%s", strings.Join(missing, ", --")), field: missing[0]}
}

// aCoupon reads an argument that is an id or a code. Codes have letters, or are
// shorter than any id.
func aCoupon(arg string) couponRef {
	if id, err := strconv.ParseInt(arg, 10, 64); err == nil && len(arg) > 16 {
		return couponRef{ID: id}
	}
	return couponRef{Code: arg}
}

// anID reads an argument that is an id.
func anID(what, arg string) (int64, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id <= 0 {
		remedy := "ids are numbers; `tallystick coupon campaign list` shows them"
		if what == "coupon" {
			remedy = "ids are numbers; `tallystick coupon lookup CODE` shows that of a code"
		}
		return 0, &usageError{err: fmt.Errorf("%s %q is no id", what, arg), field: what, remedy: remedy}
	}
	return id, nil
}

// onID returns what a command does whose argument is an id of something.
func (c *cli) onID(what string, do func(ctx context.Context, s coupons, id int64) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		id, err := anID(what, args[0])
		if err != nil {
			return err
		}
		return c.withCoupons(cmd, func(ctx context.Context, s coupons) error { return do(ctx, s, id) })
	}
}

// printOne prints what a call came to: as JSON, or as lines of name and value.
func (c *cli) printOne(v any, rows ...[2]string) error {
	if c.output == jsonForm {
		b, err := couponJSON(v)
		if err != nil {
			return err
		}
		return c.printJSON(json.RawMessage(b))
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
		}
	}
	return w.Flush()
}

// printMany prints a list: one JSON object a line, or a table.
func printMany[T any](c *cli, all []T, head string, line func(T) string) error {
	if c.output == jsonForm {
		for _, one := range all {
			if err := c.printOne(one); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	for _, one := range all {
		fmt.Fprintln(w, line(one))
	}
	return w.Flush()
}

// printCoupon prints a coupon.
func (c *cli) printCoupon(v any, k coupon.Coupon, more ...[2]string) error {
	return c.printOne(v, append([][2]string{
		{"id", k.ID.String()}, {"code", k.Code.String()}, {"status", k.At(time.Now()).String()},
		{"campaign", strconv.FormatInt(k.Campaign, 10)}, {"user", k.User}, {"order", k.Order}, {"value", money(k.Value)},
		{"valid", window(k.Valid)}, {"reserved until", instant(k.ReservedUntil)},
		{"redeemed", instant(k.RedeemedAt)}, {"redeemed by order", k.RedeemedOrder},
	}, more...)...)
}

// printResult prints what a call did to a coupon.
func (c *cli) printResult(r coupon.Result, err error) error {
	if err != nil {
		return err
	}
	replayed := ""
	if r.Replayed {
		replayed = "yes: it was done before"
	}
	return c.printCoupon(r, r.Coupon, [2]string{"replayed", replayed})
}

func money(a coupon.Amount) string { return fmt.Sprintf("%d (minor units) %s", a.Minor, a.Currency) }

// instant returns a time, "" for none.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func window(w coupon.Window) string {
	if w.Until.IsZero() {
		return ""
	}
	return instant(w.From) + " to before " + instant(w.Until)
}
