package couponsql

import (
	"math"
	"slices"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// How many rows of a wallet one page looks at, and one query of it.
const (
	maxExamined  = 1_000
	examinedOnce = 200
)

var (
	selectWallet = worded(`SELECT coupon_id, valid_until, status, version, campaign_id, code, order_no, value_minor, currency,
		valid_from, reserved_until, redeemed_order, redeemed_at
		FROM user_coupon_#
		WHERE user_id = ? AND {beyond valid_until, coupon_id}
		ORDER BY valid_until, coupon_id LIMIT ?`)

	walletColumns = []string{"user_id", "coupon_id", "valid_until", "status", "campaign_id", "code",
		"value_minor", "currency", "valid_from", "order_no", "reserved_until", "redeemed_order", "redeemed_at", "version"}
	unusedColumns = append(slices.Clone(walletColumns[:9]), "version") // what the others have by default
	insertWallet  = shard.SQL(inserting("user_coupon_#", walletColumns))
	insertUnused  = shard.SQL(inserting("user_coupon_#", unusedColumns))
	upsertWallet  = upsertingNewer("user_coupon_#", 2, walletColumns...)
	updateWallet  = worded(`UPDATE user_coupon_# {by PRIMARY} SET valid_until = ?, status = ?, reserved_until = ?, redeemed_order = ?, redeemed_at = ?, version = ?
		WHERE user_id = ? AND coupon_id = ?`)
)

func walletRow(c coupon.Coupon) []any {
	return []any{c.User, c.ID, millis(c.Valid.Until), c.Status, c.Campaign, c.Code.Symbols(),
		c.Value.Minor, c.Value.Currency, millis(c.Valid.From), c.Order, millis(c.ReservedUntil), c.RedeemedOrder, millis(c.RedeemedAt), c.Version}
}

// Keep writes a coupon into its user's wallet unless a newer version is there.
func (t tx) Keep(c coupon.Coupon) error { return t.write.Queue(t.in(upsertWallet), walletRow(c)...) }

// KeepNew puts a coupon into its user's wallet, where it was not yet. What nothing
// happened to but that it was claimed needs fewer columns.
func (t tx) KeepNew(c coupon.Coupon) error {
	row := walletRow(c)
	if c.Order == "" && c.ReservedUntil.IsZero() && c.RedeemedOrder == "" && c.RedeemedAt.IsZero() {
		return t.write.Queue(insertUnused, append(row[:9], c.Version)...)
	}
	return t.write.Queue(insertWallet, row...)
}

// KeepStatus brings the coupon's row in its user's wallet up to date.
func (t tx) KeepStatus(c coupon.Coupon) error {
	return t.write.Queue(t.in(updateWallet), millis(c.Valid.Until), c.Status, millis(c.ReservedUntil), c.RedeemedOrder, millis(c.RedeemedAt), c.Version,
		c.User, c.ID)
}

// Wallet returns a page of a user's wallet.
func (r rows) Wallet(user string, filter coupon.WalletFilter, after coupon.WalletKey, n int) (coupon.WalletPage, error) {
	page := coupon.WalletPage{Next: after}
	reach := reachOf(filter)
	for examined := 0; len(page.Coupons) < n && examined < maxExamined && !page.End; {
		limit := min(examinedOnce, maxExamined-examined)
		if len(filter.Status) == 0 {
			limit = n - len(page.Coupons) + 1 // one more, to see whether this is the end
		}
		some, err := r.wallet(user, reach, page.Next, limit)
		if err != nil {
			return page, err
		}
		examined += len(some)
		within := reach.cut(some)
		page.End = choose(&page, within, filter, n) && (len(some) < limit || len(within) < len(some))
	}
	return page, nil
}

// choose adds coupons that the filter chooses to a page, until it has n. It
// reports whether it looked at all of them.
func choose(page *coupon.WalletPage, some []coupon.Coupon, filter coupon.WalletFilter, n int) bool {
	for _, c := range some {
		if len(page.Coupons) == n {
			return false
		}
		if len(filter.Status) == 0 || slices.Contains(filter.Status, c.At(filter.Now)) {
			page.Coupons = append(page.Coupons, c)
		}
		page.Next = coupon.WalletKey{Until: c.Valid.Until, ID: c.ID}
	}
	return true
}

// wallet returns up to n rows beyond after.
func (r rows) wallet(user string, reach reach, after coupon.WalletKey, n int) ([]coupon.Coupon, error) {
	until, id := millis(after.Until), after.ID
	if until < reach.from {
		until, id = reach.from, 0
	}
	scan := func(row scanner) (coupon.Coupon, error) {
		c := coupon.Coupon{User: user}
		err := row.Scan(&c.ID, timeColumn{&c.Valid.Until}, &c.Status, &c.Version, &c.Campaign, codeColumn{&c.Code}, &c.Order,
			&c.Value.Minor, &c.Value.Currency, timeColumn{&c.Valid.From}, timeColumn{&c.ReservedUntil}, &c.RedeemedOrder, timeColumn{&c.RedeemedAt})
		return c, err
	}
	return all(r, scan, r.in(selectWallet), user, until, until, id, n)
}

// A reach is which ends, in ms, coupons have that a filter can choose.
type reach struct{ from, to int64 }

// cut returns the coupons, which are in the order of the wallet, up to the end of
// the reach.
func (r reach) cut(coupons []coupon.Coupon) []coupon.Coupon {
	beyond := slices.IndexFunc(coupons, func(c coupon.Coupon) bool { return millis(c.Valid.Until) > r.to })
	if beyond < 0 {
		return coupons
	}
	return coupons[:beyond]
}

// reachOf saves those who ask for what can still be used, or no more, from
// walking past everything else.
func reachOf(f coupon.WalletFilter) reach {
	only := func(s coupon.Status) bool {
		return len(f.Status) > 0 && !slices.ContainsFunc(f.Status, func(other coupon.Status) bool { return other != s })
	}
	switch {
	case only(coupon.Issued):
		return reach{millis(f.Now) + 1, math.MaxInt64}
	case only(coupon.Expired):
		return reach{1, millis(f.Now)}
	}
	return reach{0, math.MaxInt64}
}
