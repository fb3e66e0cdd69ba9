package coupontest

import (
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

func order(t *testing.T, w *World) {
	ctx := t.Context()
	c := w.Campaign(t, 2_000, nil)
	r := coupon.IssueRequest{Campaign: c.ID, Batch: "b1", Order: "big", Count: 1_700}
	for range 2 {
		issue, err := w.Issue(ctx, r)
		if err != nil || issue.Operation == nil {
			t.Fatalf("%+v, %v", issue, err)
		}
		op := w.Await(t, *issue.Operation)
		if op.Succeeded != 1_700 || op.Failed != 0 || op.Error != "" {
			t.Fatalf("%+v", op)
		}
	}
	r.Count++
	_, err := w.Issue(ctx, r)
	want(t, "the same batch with another count", err, coupon.ErrMismatch)
	seen, each := walkOrder(t, w, "big")
	if seen != 1_700 {
		t.Errorf("the order has %d coupons, want 1,700", seen)
	}
	for at, n := range each {
		if n < 53 || n > 54 {
			t.Errorf("shard %d has %d of 1,700", at, n)
		}
	}
}

// walkOrder reads the coupons that were issued to an order, page by page, and
// returns how many there are, and on each shard.
func walkOrder(t *testing.T, w *World, number string) (seen int, each [shard.Count]int) {
	t.Helper()
	for after := coupon.ID(0); ; {
		page, err := w.OrderCoupons(t.Context(), number, coupon.OrderIssued, after, 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page {
			if c.ID <= after || c.Order != number || c.Status != coupon.Issued {
				t.Fatalf("after %d: %+v", after, c)
			}
			after = c.ID
			seen++
			each[c.ID.Shard()]++
		}
		if len(page) < 500 {
			return seen, each
		}
	}
}

func orderOfAUser(t *testing.T, w *World) {
	ann, _ := users(t)
	c := w.Campaign(t, 320, nil)
	issue, err := w.Issue(t.Context(), coupon.IssueRequest{Campaign: c.ID, Batch: "b1", Order: "o1", Count: 25, User: ann})
	if err != nil || len(issue.Coupons) != 25 {
		t.Fatalf("%+v, %v", issue, err)
	}
	wallet(t, w, ann, issue.Coupons...)
	home := 0
	for _, c := range issue.Coupons {
		if shard.Same(c.ID, shard.Text(ann)) {
			home++
		}
	}
	if home != 10 { // all there were
		t.Errorf("%d of 25 are on the user's shard, want 10", home)
	}
}

func tooLargeAnOrder(t *testing.T, w *World) {
	ctx := t.Context()
	c := w.Campaign(t, 40, nil)
	for range 2 {
		_, err := w.Issue(ctx, coupon.IssueRequest{Campaign: c.ID, Batch: "b1", Order: "too-many", Count: 41})
		want(t, "more than there are", err, coupon.ErrPoolExhausted)
	}
	if got, err := w.OrderCoupons(ctx, "too-many", coupon.OrderIssued, 0, 100); err != nil || len(got) != 40 {
		t.Errorf("the order got %d of 40, %v", len(got), err)
	}
	err := w.Store.Read(ctx, shard.Text("b1"), func(rows coupon.Rows) error {
		pending, err := rows.PendingBatches(time.Now().Add(time.Hour), 100)
		for _, b := range pending {
			if b.Campaign == c.ID {
				t.Errorf("the sweeper would meet it for ever: %+v", b)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}

	c = w.Campaign(t, 600, nil)
	w.issued(t, c, "few", 50) // so that shards run out one after the other
	for range 2 {
		issue, err := w.Issue(ctx, coupon.IssueRequest{Campaign: c.ID, Batch: "b2", Order: "o2", Count: 601})
		if err != nil || issue.Operation == nil {
			t.Fatalf("%+v, %v", issue, err)
		}
		op := w.Await(t, *issue.Operation)
		if op.Succeeded != 550 || op.Failed != 51 || op.Error != coupon.ErrPoolExhausted.Code {
			t.Errorf("%+v, want 550 of 601 and POOL_EXHAUSTED", op)
		}
	}
}

// issued issues coupons to an order of the batch's name.
func (w *World) issued(t *testing.T, c coupon.Campaign, batch string, n int64) []coupon.Coupon {
	t.Helper()
	issue, err := w.Issue(t.Context(), coupon.IssueRequest{Campaign: c.ID, Batch: batch, Order: batch, Count: n})
	if err != nil || int64(len(issue.Coupons)) != n {
		t.Fatalf("issued %d of %d, %v", len(issue.Coupons), n, err)
	}
	return issue.Coupons
}
