package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
)

// heldCoupons are what the user has been told to own so far.
type heldCoupons struct {
	mu      sync.Mutex
	coupons []coupon.Coupon
}

func (h *heldCoupons) add(coupons ...coupon.Coupon) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.coupons = append(h.coupons, coupons...)
}

func (h *heldCoupons) all() []coupon.Coupon {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.coupons)
}

// byWallet orders coupons as wallets do.
func byWallet(a, b coupon.Coupon) int {
	return cmp.Or(a.Valid.Until.Compare(b.Valid.Until), cmp.Compare(a.ID, b.ID))
}

// A pager returns the next page of a wallet, and whether it is the last one.
type pager func(ctx context.Context) (page []coupon.Coupon, end bool, err error)

// ofService asks the service, by keys.
func (w *walletWorld) ofService(status ...coupon.Status) pager {
	q := coupon.WalletQuery{User: walletUser, Size: w.pageSize, Status: status}
	return func(ctx context.Context) ([]coupon.Coupon, bool, error) {
		page, err := w.Wallet(ctx, q)
		if err == nil {
			q.After = page.Next
		}
		return page.Coupons, page.End, err
	}
}

// ofClient asks over the wire, by page tokens.
func (w *walletWorld) ofClient(fresh bool) pager {
	token := ""
	return func(ctx context.Context) ([]coupon.Coupon, bool, error) {
		page, next, err := w.client.Wallet(ctx, coupon.WalletQuery{User: walletUser, Size: w.pageSize, Fresh: fresh}, token)
		if err == nil {
			token = next
		}
		return page, err == nil && next == "", err
	}
}

// walk turns all pages, calls between after each, and returns what was on them.
func (w *walletWorld) walk(ctx context.Context, next pager, between func()) (seen []coupon.Coupon, pages int, err error) {
	for end := false; !end; {
		var page []coupon.Coupon
		page, end, err = next(ctx)
		if refused, ok := errors.AsType[*coupon.Refusal](err); ok && refused.Retryable && ctx.Err() == nil {
			end = false
			continue
		}
		if err != nil {
			return seen, pages, err
		}
		seen = append(seen, page...)
		if pages++; pages > 10*w.pages() {
			return seen, pages, fmt.Errorf("%d pages and no end", pages)
		}
		between()
	}
	return seen, pages, nil
}

// misses returns what is wrong with a walk that saw coupons: those held during all of
// it have to be there, none may be there twice, and all in order.
func misses(held, seen []coupon.Coupon) (wrong []string) {
	times := make(map[coupon.ID]int, len(seen))
	for _, c := range seen {
		if times[c.ID]++; times[c.ID] == 2 {
			wrong = append(wrong, fmt.Sprintf("coupon %d was seen twice", c.ID))
		}
	}
	for _, c := range held {
		if times[c.ID] == 0 {
			wrong = append(wrong, fmt.Sprintf("coupon %d, held all the time, was not seen", c.ID))
		}
	}
	if !slices.IsSortedFunc(seen, byWallet) {
		wrong = append(wrong, "coupons were not in order")
	}
	return wrong
}

// A bustle is what goes on for the user while the wallet is walked through: for each
// page that is turned one thing.
type bustle struct {
	w         *walletWorld
	campaigns []coupon.Campaign // that end at the beginning, in the tie and at the end
	turned    chan struct{}
	spend     []coupon.Coupon // of those that were there before
	all       sync.WaitGroup

	claims, issues, redeems, voids, spent atomic.Int64
}

// begin makes campaigns and begins. Every fourth coupon of the wallet may be
// redeemed; untouched returns the others.
func (w *walletWorld) begin(t *testing.T) *bustle {
	t.Helper()
	b := &bustle{w: w, turned: make(chan struct{})}
	total := int64(w.coupons/6/32+1) * 32 // more than there are turns for
	for _, at := range []int{w.coupons / 10, w.coupons / 2, w.coupons - 1} {
		b.campaigns = append(b.campaigns, w.Campaign(t, total, func(c *coupon.Campaign) {
			c.ValidDays, c.ValidUntil, c.PerUserLimit = 0, w.first.Add(w.end(at)), 1_000
		}))
	}
	for i, c := range w.begun {
		if i%4 == 0 {
			b.spend = append(b.spend, c)
		}
	}
	for i, do := range []func(*testing.T, int64){b.claim, b.claim, b.claim, b.issue, b.redeem, b.redeem} {
		b.all.Go(func() {
			for n := int64(i); ; n += 6 {
				if _, open := <-b.turned; !open {
					return
				}
				do(t, n)
			}
		})
	}
	return b
}

// turn lets somebody do something, and waits until somebody has time.
func (b *bustle) turn() { b.turned <- struct{}{} }

func (b *bustle) end() {
	close(b.turned)
	b.all.Wait()
}

// untouched are the coupons of the wallet that nobody redeems.
func (b *bustle) untouched() (left []coupon.Coupon) {
	for i, c := range b.w.begun {
		if i%4 != 0 {
			left = append(left, c)
		}
	}
	return left
}

func (b *bustle) claim(t *testing.T, n int64) {
	campaign := b.campaigns[n%3]
	r, err := insist(t, func(ctx context.Context) (coupon.Result, error) {
		return b.w.Claim(ctx, campaign.ID, coupon.Call{User: walletUser, Request: fmt.Sprint("r", n)})
	})
	if err != nil {
		t.Error("claim:", err)
		return
	}
	b.claims.Add(1)
	b.w.held.add(r.Coupon)
}

// issue gives the user three coupons at once, which end as others do.
func (b *bustle) issue(t *testing.T, n int64) {
	for {
		r, err := b.w.Issue(t.Context(), coupon.IssueRequest{Campaign: b.campaigns[1].ID, Batch: fmt.Sprint("b", n), Order: "gifts", Count: 3, User: walletUser})
		if refused, ok := errors.AsType[*coupon.Refusal](err); ok && refused.Retryable {
			continue
		}
		if err != nil {
			t.Error("issue:", err)
			return
		}
		b.issues.Add(1)
		b.w.held.add(r.Coupons...)
		return
	}
}

// redeem redeems a coupon, and every other one is given back.
func (b *bustle) redeem(t *testing.T, n int64) {
	i := b.spent.Add(1) - 1
	if int(i) >= len(b.spend) {
		return
	}
	c, order := b.spend[i], fmt.Sprint("o", n)
	_, err := insist(t, func(ctx context.Context) (coupon.Result, error) {
		return b.w.Redeem(ctx, coupon.Target{ID: c.ID}, coupon.Call{User: walletUser, Order: order})
	})
	if err != nil {
		t.Error("redeem:", err)
		return
	}
	if b.redeems.Add(1); i%2 == 0 {
		return
	}
	_, err = insist(t, func(ctx context.Context) (coupon.Result, error) {
		return b.w.Void(ctx, c.ID, coupon.Call{Order: order, Request: "v"})
	})
	if err != nil {
		t.Error("void:", err)
		return
	}
	b.voids.Add(1)
}

// walkBusy walks through the wallet in four ways at once while coupons come and are
// used, and returns what there is to say about it.
func (w *walletWorld) walkBusy(t *testing.T) string {
	t.Helper()
	b := w.begin(t)
	stop := w.move(t)
	began := time.Now()
	var walks sync.WaitGroup
	var pages atomic.Int64
	for name, next := range map[string]pager{
		"by keys": w.ofService(), "by tokens": w.ofClient(false), "by tokens, fresh": w.ofClient(true), "issued only": w.ofService(coupon.Issued),
	} {
		held := w.held.all()
		if name == "issued only" {
			held = b.untouched()
		}
		walks.Go(func() {
			seen, n, err := w.walk(t.Context(), next, b.turn)
			if err != nil {
				t.Errorf("%s: after %d pages: %v", name, n, err)
			}
			report(t, name, misses(held, seen))
			pages.Add(int64(n))
		})
	}
	walks.Wait()
	took := time.Since(began)
	b.end()
	stop()
	handled := w.queue.Stats()[0].Handled
	if b.claims.Load() == 0 || b.issues.Load() == 0 || b.redeems.Load() == 0 || b.voids.Load() == 0 || handled == 0 {
		t.Errorf("nothing went on: %d claims, %d batches, %d redemptions, %d voids, %d events", b.claims.Load(), b.issues.Load(), b.redeems.Load(), b.voids.Load(), handled)
	}
	return fmt.Sprintf("%d pages in %v, four walks at once (by keys, by tokens over the wire, with fresh=true, only those issued), beside %d claims, %d batches of 3, %d redemptions, %d voids of the same user and %d events brought to the wallet: every coupon held during a walk was seen once",
		pages.Load(), took.Round(time.Millisecond), b.claims.Load(), b.issues.Load(), b.redeems.Load(), b.voids.Load(), handled)
}

// report fails the test with what is wrong, or the first of it.
func report(t *testing.T, walk string, wrong []string) {
	t.Helper()
	if n := len(wrong); n > 0 {
		t.Errorf("%s: %d are wrong, first: %v", walk, n, wrong[:min(n, 5)])
	}
}
