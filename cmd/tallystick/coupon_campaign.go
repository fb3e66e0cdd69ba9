package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/coupon"
)

func newCouponCampaign(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "campaign", Short: "Create, list, pause, resume and end campaigns"}
	cmd.AddCommand(
		newCampaignCreate(c), newCampaignList(c), newCampaignGet(c),
		newCampaignMove(c, "pause", "Stop claims until they are resumed", coupon.Paused),
		newCampaignMove(c, "resume", "Let claims go on", coupon.Active),
		newCampaignMove(c, "end", "Stop claims for good", coupon.Ended),
	)
	return group(cmd)
}

func newCampaignCreate(c *cli) *cobra.Command {
	var a coupon.Campaign
	var from, until, attributes, key string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a campaign",
		Long: `Create a campaign, which is active at once. Its coupons come with "coupon
generate". Changing or ending it later changes no coupon that was issued.`,
		Example: `  tallystick coupon campaign create spring --total 10000 --amount 500 --currency EUR --time-zone Europe/Berlin --valid-days 30
  tallystick coupon campaign create gala --total 100 --amount 2000 --currency EUR --time-zone Europe/Berlin --valid-until 2027-01-01T00:00:00+01:00`,
		Args: names("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			a.Name = args[0]
			if a.ValidFrom, err = parseInstant("valid-from", from); err != nil {
				return err
			}
			if a.ValidUntil, err = parseInstant("valid-until", until); err != nil {
				return err
			}
			if attributes != "" {
				a.Attributes = json.RawMessage(attributes)
			}
			if a.ValidDays < 0 {
				return outOfRange("valid-days", fmt.Sprintf("use 1 to %d, or leave it out and give --valid-until", coupon.MaxValidDays))
			}
			if a.PerUserLimit < 1 {
				return outOfRange("per-user-limit", "use at least 1")
			}
			return c.withCoupons(cmd, func(ctx context.Context, s coupons) error {
				created, err := s.CreateCampaign(ctx, a, key)
				if err != nil {
					return err
				}
				return c.printCampaign(created)
			})
		},
	}
	f := cmd.Flags()
	f.Int64Var(&a.Total, "total", 0, "`number` of coupons")
	f.Int64Var(&a.Value.Minor, "amount", 0, "what one is worth: a `number` of the currency's smallest units, like 500 for 5 EUR")
	f.StringVar(&a.Value.Currency, "currency", "", "ISO 4217 `code`, like EUR")
	f.StringVar(&a.TimeZone, "time-zone", "", "`zone` whose midnights end days, like Europe/Berlin")
	f.IntVar(&a.ValidDays, "valid-days", 0, "ends at the end of the day that is so many local `days` after that of the claim")
	f.StringVar(&from, "valid-from", "", "first `instant`, like 2027-01-01T00:00:00+01:00 (default: now)")
	f.StringVar(&until, "valid-until", "", "first `instant` no longer; this or --valid-days is required")
	f.IntVar(&a.PerUserLimit, "per-user-limit", 1, "`number` of coupons that one user may claim")
	f.StringVar(&key, "idempotency-key", "", "`key` under which a repetition within a day creates nothing")
	f.StringVar(&attributes, "attributes", "", "a `JSON` object of your own, up to 1 KiB")
	need(f, "total", "currency", "time-zone")
	return cmd
}

// outOfRange is what a flag is that has a value no command takes.
func outOfRange(flag, remedy string) error {
	return &usageError{err: fmt.Errorf("--%s is out of range", flag), field: flag, remedy: remedy}
}

// parseInstant reads an instant; "" is none.
func parseInstant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, &usageError{err: fmt.Errorf("--%s %q is no instant", flag, text), field: flag, remedy: "write it like 2027-01-01T00:00:00+01:00"}
	}
	return t, nil
}

func newCampaignGet(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "get ID",
		Short: "Show a campaign",
		Args:  names("ID"),
		RunE: c.onID("campaign", func(ctx context.Context, s coupons, id int64) error {
			got, err := s.Campaign(ctx, id)
			if err != nil {
				return err
			}
			return c.printCampaign(got)
		}),
	}
}

func newCampaignMove(c *cli, use, short string, to coupon.CampaignState) *cobra.Command {
	return &cobra.Command{
		Use:   use + " ID",
		Short: short,
		Long:  short + ". All servers know within 2 seconds. Coupons that were issued stay as they are.",
		Args:  names("ID"),
		RunE: c.onID("campaign", func(ctx context.Context, s coupons, id int64) error {
			got, err := s.MoveCampaign(ctx, id, to)
			if err != nil {
				return err
			}
			return c.printCampaign(got)
		}),
	}
}

func newCampaignList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List campaigns",
		Args:  names(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withCoupons(cmd, func(ctx context.Context, s coupons) error {
				var all []coupon.Campaign
				for token := ""; ; {
					page, next, err := s.Campaigns(ctx, 0, token)
					if err != nil {
						return err
					}
					if all = append(all, page...); next == "" {
						break
					}
					token = next
				}
				return printMany(c, all, "ID\tNAME\tSTATE\tGENERATED\tTOTAL\tVALUE", func(k coupon.Campaign) string {
					return fmt.Sprintf("%d\t%s\t%s\t%d\t%d\t%s", k.ID, k.Name, k.State, k.Generated, k.Total, money(k.Value))
				})
			})
		},
	}
}

func (c *cli) printCampaign(k coupon.Campaign) error {
	days := ""
	if k.ValidDays > 0 {
		days = strconv.Itoa(k.ValidDays) + " after the claim"
	}
	return c.printOne(k,
		[2]string{"id", strconv.FormatInt(k.ID, 10)}, [2]string{"name", k.Name}, [2]string{"state", string(k.State)},
		[2]string{"coupons", fmt.Sprintf("%d of %d generated", k.Generated, k.Total)}, [2]string{"value", money(k.Value)},
		[2]string{"per user", strconv.Itoa(k.PerUserLimit)}, [2]string{"valid from", instant(k.ValidFrom)},
		[2]string{"valid until", instant(k.ValidUntil)}, [2]string{"valid days", days}, [2]string{"time zone", k.TimeZone},
		[2]string{"void policy", k.VoidPolicy.Kind},
	)
}
