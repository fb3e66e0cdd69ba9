package coupontest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// A Picture tells what there is after a call, in words that are the same however
// often it was interrupted: everything but ids, codes and times.
type Picture struct {
	Campaign int64
	User     string
	Batch    string
	Coupons  []coupon.ID // beside those of user and batch
	Own      bool        // the campaign is nobody else's
	Without  string      // part of names that differs from run to run
}

// Take returns the picture as it is now.
func (p Picture) Take(ctx context.Context, store coupon.Store, control coupon.Control) (string, error) {
	t := photographer{ctx: ctx, store: store}
	for _, id := range p.Coupons {
		t.line("coupon %s", t.coupon(id))
	}
	if p.User != "" {
		t.user(p.Campaign, p.User)
	}
	if p.Batch != "" {
		t.batch(coupon.BatchKey{Campaign: p.Campaign, Number: p.Batch})
	}
	if p.Own {
		c, err := control.Campaign(ctx, p.Campaign)
		if err != nil {
			return "", err
		}
		t.line("campaign of %d, %d generated, %d available", c.Total, c.Generated, t.available(p.Campaign))
	}
	text := strings.Join(t.lines, "\n")
	if p.Without != "" {
		text = strings.ReplaceAll(text, p.Without, "")
	}
	return text, t.err
}

// Pending returns how many claims, binds and batches are pending on all shards.
func Pending(ctx context.Context, store coupon.Store) (n int, err error) {
	later := time.Now().Add(time.Hour)
	for _, at := range shard.All() {
		err := store.Read(ctx, at, func(rows coupon.Rows) error {
			claims, err := rows.Pending(later, 1_000)
			if err != nil {
				return err
			}
			batches, err := rows.PendingBatches(later, 1_000)
			n += len(claims) + len(batches)
			return err
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

type photographer struct {
	ctx   context.Context
	store coupon.Store
	lines []string
	err   error
}

func (t *photographer) line(format string, args ...any) {
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func (t *photographer) read(key shard.Key, fn func(coupon.Rows) error) {
	if t.err == nil {
		t.err = t.store.Read(t.ctx, key, fn)
	}
}

// coupon tells of a coupon and its ledger.
func (t *photographer) coupon(id coupon.ID) (text string) {
	t.read(id, func(rows coupon.Rows) error {
		c, err := rows.Coupon(id)
		if err != nil {
			return err
		}
		events, err := rows.Events(id)
		text = fmt.Sprintf("%v v%d user=%s order=%s reserved=%s redeemed=%s/%s", c.Status, c.Version, c.User, c.Order, c.ReservedOrder, c.RedeemedOrder, c.RedeemedUser)
		for _, e := range events {
			text += fmt.Sprintf(" %s(%s %s %s)", e.Type, e.User, e.Order, e.Request)
		}
		return err
	})
	return text
}

func (t *photographer) user(campaign int64, user string) {
	var claims []coupon.Claim
	var page coupon.WalletPage
	t.read(shard.Text(user), func(rows coupon.Rows) (err error) {
		if claims, err = rows.Claims(user, campaign); err != nil {
			return err
		}
		page, err = rows.Wallet(user, coupon.WalletFilter{Now: time.Now()}, coupon.WalletKey{}, coupon.MaxPage)
		return err
	})
	for _, c := range claims {
		t.line("claim %s number=%d done=%v of %s", c.Request, c.Number, c.Done, t.coupon(c.Coupon))
	}
	var wallet []string
	for _, c := range page.Coupons {
		wallet = append(wallet, "wallet "+t.coupon(c.ID))
	}
	slices.Sort(wallet)
	t.lines = append(t.lines, wallet...)
}

// batch tells of a batch, the order's list and, of equal coupons, how many.
func (t *photographer) batch(key coupon.BatchKey) {
	var b coupon.Batch
	var keys []coupon.BatchKey
	t.read(shard.Text(key.Number), func(rows coupon.Rows) (err error) {
		b, err = rows.Batch(key.Campaign, key.Number)
		return err
	})
	t.read(shard.Text(b.Order), func(rows coupon.Rows) (err error) {
		keys, err = rows.OrderBatches(b.Order)
		return err
	})
	t.line("batch of %d for order=%s user=%s done=%v, known to the order: %v", b.Count, b.Order, b.User, b.Done, slices.Contains(keys, key))
	alike := make(map[string]int)
	for _, at := range shard.All() {
		var chunks []coupon.Chunk
		t.read(at, func(rows coupon.Rows) (err error) {
			chunks, err = rows.Chunks(key.Campaign, key.Number)
			return err
		})
		for _, chunk := range chunks {
			for _, id := range chunk.IDs {
				alike[t.coupon(id)]++
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(alike)) {
		t.line("%d coupons %s", alike[text], text)
	}
}

func (t *photographer) available(campaign int64) (n int) {
	for _, at := range shard.All() {
		t.read(at, func(rows coupon.Rows) error {
			refs, err := rows.Stock(campaign, 0, 1_000_000)
			n += len(refs)
			return err
		})
	}
	return n
}
