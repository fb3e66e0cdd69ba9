package coupontest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// Books are who had to do with a campaign, and what is checked of it when nothing
// is under way: every coupon is in the stock, a user's or an order's, and in one
// of them only, and whatever tells of it tells the same.
type Books struct {
	Campaign int64
	Users    []string // who claimed
	Batches  []string
}

// Audit returns what is wrong with the books. It reads the databases, not what
// any process thinks.
func (b Books) Audit(ctx context.Context, store coupon.Store, control coupon.Control) ([]string, error) {
	c, err := control.Campaign(ctx, b.Campaign)
	if err != nil {
		return nil, err
	}
	a := auditor{ctx: ctx, store: store, campaign: c, seen: make(map[coupon.ID]string)}
	if !c.Closed() {
		a.wrong("%d of %d coupons are said to be generated", c.Generated, c.Total)
	}
	for _, at := range shard.All() {
		a.stock(at)
	}
	for _, user := range b.Users {
		a.user(user)
	}
	for _, batch := range b.Batches {
		a.batch(batch)
	}
	if a.err == nil && int64(len(a.seen)) != c.Total {
		a.wrong("stock, users and orders have %d coupons of %d", len(a.seen), c.Total)
	}
	return a.found, a.err
}

// An auditor collects what is wrong, and the first error that kept it from
// looking.
type auditor struct {
	ctx      context.Context
	store    coupon.Store
	campaign coupon.Campaign
	seen     map[coupon.ID]string // who has it
	found    []string
	err      error
}

func (a *auditor) wrong(format string, args ...any) {
	a.found = append(a.found, fmt.Sprintf(format, args...))
}

// read runs fn on a shard unless something failed before.
func (a *auditor) read(key shard.Key, fn func(coupon.Rows) error) {
	if a.err == nil {
		a.err = a.store.Read(a.ctx, key, fn)
	}
}

// has notes who has a coupon.
func (a *auditor) has(who string, id coupon.ID) {
	if other := a.seen[id]; other != "" {
		a.wrong("coupon %d is %s and %s", id, other, who)
	}
	a.seen[id] = who
}

// stock looks at what nobody has, and at what is pending.
func (a *auditor) stock(at shard.Shard) {
	a.read(at, func(rows coupon.Rows) error {
		refs, err := rows.Stock(a.campaign.ID, 0, 1_000_000)
		if err != nil {
			return err
		}
		for _, r := range refs {
			a.has("in stock", r.ID)
		}
		later := time.Now().Add(time.Hour)
		pending, err := rows.Pending(later, 1_000)
		if err != nil {
			return err
		}
		for _, c := range pending {
			a.wrong("pending: %+v", c)
		}
		batches, err := rows.PendingBatches(later, 1_000)
		for _, b := range batches {
			a.wrong("pending: %+v", b)
		}
		return err
	})
}

// user looks at a user's claims, their coupons and the wallet.
func (a *auditor) user(user string) {
	var claims []coupon.Claim
	var page coupon.WalletPage
	a.read(shard.Text(user), func(rows coupon.Rows) (err error) {
		if claims, err = rows.Claims(user, a.campaign.ID); err != nil {
			return err
		}
		page, err = rows.Wallet(user, coupon.WalletFilter{Now: time.Now()}, coupon.WalletKey{}, coupon.MaxPage)
		return err
	})
	owned := make(map[coupon.ID]bool)
	counted := 0
	for _, c := range claims {
		owned[c.Coupon] = true
		if c.Number > 0 {
			counted++
			a.has("claimed by "+user, c.Coupon)
		}
		a.owned(user, c.Coupon)
		if !slices.ContainsFunc(page.Coupons, func(w coupon.Coupon) bool { return w.ID == c.Coupon }) {
			a.wrong("coupon %d is not in the wallet of %s", c.Coupon, user)
		}
	}
	if counted > a.campaign.PerUserLimit {
		a.wrong("%s has claimed %d coupons, allowed are %d", user, counted, a.campaign.PerUserLimit)
	}
	for _, w := range page.Coupons {
		if w.Campaign == a.campaign.ID && !owned[w.ID] && w.Order == "" {
			a.wrong("the wallet of %s has coupon %d, which the user did not claim", user, w.ID)
		}
	}
}

// owned looks at a coupon that is to be a user's, and at its ledger.
func (a *auditor) owned(user string, id coupon.ID) {
	a.read(id, func(rows coupon.Rows) error {
		c, err := rows.Coupon(id)
		if err != nil {
			return fmt.Errorf("coupon %d of %s: %w", id, user, err)
		}
		if c.User != user || c.Status == coupon.Available {
			a.wrong("coupon %d is %v of %q, and %s has claimed it", id, c.Status, c.User, user)
		}
		events, err := rows.Events(id)
		if err == nil && !unbroken(c, events) {
			a.wrong("the ledger of %+v is %+v", c, events)
		}
		return err
	})
}

// unbroken reports whether a ledger has each version of the coupon once, after
// those that are written in bulk.
func unbroken(c coupon.Coupon, events []coupon.Event) bool {
	next := uint32(2)
	if c.Order != "" {
		next = 3
	}
	for _, e := range events {
		if e.Version != next {
			return false
		}
		next++
	}
	return next == c.Version+1
}

// batch looks at a batch, its chunks and their coupons.
func (a *auditor) batch(number string) {
	var b coupon.Batch
	var keys []coupon.BatchKey
	a.read(shard.Text(number), func(rows coupon.Rows) (err error) {
		b, err = rows.Batch(a.campaign.ID, number)
		return err
	})
	a.read(shard.Text(b.Order), func(rows coupon.Rows) (err error) {
		keys, err = rows.OrderBatches(b.Order)
		return err
	})
	if a.err == nil && !slices.Contains(keys, b.BatchKey) {
		a.wrong("order %s does not know batch %s", b.Order, number)
	}
	var n int64
	for _, at := range shard.All() {
		a.read(at, func(rows coupon.Rows) error {
			chunks, err := rows.Chunks(a.campaign.ID, number)
			for _, chunk := range chunks {
				n += int64(len(chunk.IDs))
				a.chunk(b, chunk)
			}
			return err
		})
	}
	if a.err == nil && (!b.Done || n != b.Count) {
		a.wrong("batch %s of %d has %d coupons, done: %v", number, b.Count, n, b.Done)
	}
}

func (a *auditor) chunk(b coupon.Batch, chunk coupon.Chunk) {
	a.read(chunk.Shard, func(rows coupon.Rows) error {
		coupons, err := rows.Coupons(chunk.IDs)
		if err == nil && len(coupons) != len(chunk.IDs) {
			a.wrong("of chunk %d on shard %d %d coupons are there", chunk.Chunk, chunk.Shard, len(coupons))
		}
		for _, c := range coupons {
			a.has("issued by batch "+b.Number, c.ID)
			if c.Order != b.Order || c.Status == coupon.Available || b.User != "" && c.User != b.User {
				a.wrong("batch %s has %+v", b.Number, c)
			}
		}
		return err
	})
}
