package coupontest

import (
	"testing"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// Elsewhere returns a coupon of the campaign's stock that is not on the user's
// shard.
func Elsewhere(t testing.TB, store coupon.Store, campaign int64, user string) (ref coupon.Ref) {
	t.Helper()
	home := shard.Text(user).Bucket().Shard()
	for i := 1; i < shard.Count && ref.ID == 0; i++ {
		at := (home + shard.Shard(i)) % shard.Count
		err := store.Read(t.Context(), at, func(rows coupon.Rows) error {
			refs, err := rows.Stock(campaign, 0, 1)
			if len(refs) > 0 {
				ref = refs[0]
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if ref.ID == 0 {
		t.Fatalf("campaign %d has no coupon that is not on shard %d", campaign, home)
	}
	return ref
}

// Pend leaves a claim as a process does that dies after its first step.
func Pend(t testing.TB, store coupon.Store, claim coupon.Claim) {
	t.Helper()
	err := store.Write(t.Context(), shard.Text(claim.User), func(tx coupon.Tx) error {
		claim.At = tx.Now()
		return tx.PutClaim(claim)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Steal gives a coupon of the stock to an order, as another process would.
func Steal(t testing.TB, store coupon.Store, campaign int64, ref coupon.Ref, order string) {
	t.Helper()
	err := store.Write(t.Context(), ref.ID, func(tx coupon.Tx) error {
		c, err := tx.Coupon(ref.ID)
		if err != nil {
			return err
		}
		c.Status, c.Order, c.IssuedAt, c.Version = coupon.Issued, order, tx.Now(), 2
		issued, err := tx.IssueAll([]coupon.Ref{ref}, c)
		if err == nil && len(issued) == 0 {
			t.Errorf("coupon %d is not free", ref.ID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
