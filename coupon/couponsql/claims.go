package couponsql

import (
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

const claimColumns = "c.user_id, c.campaign_id, c.request_no, COALESCE(c.number, 0), c.coupon_id, c.done, c.at"

var (
	selectClaims  = shard.SQL("SELECT " + claimColumns + " FROM claim_# AS c WHERE c.user_id = ? AND c.campaign_id = ? ORDER BY c.number, c.request_no")
	selectPending = shard.SQL("SELECT " + claimColumns + ` FROM claim_pending_# AS p JOIN claim_# AS c
		ON c.user_id = p.user_id AND c.campaign_id = p.campaign_id AND c.request_no = p.request_no
		WHERE p.at < ? ORDER BY p.at LIMIT ?`)

	insertClaim   = shard.SQL("INSERT INTO claim_# (user_id, campaign_id, request_no, number, coupon_id, done, at) VALUES (?, ?, ?, ?, ?, ?, ?)")
	insertPending = shard.SQL("INSERT INTO claim_pending_# (user_id, campaign_id, request_no, at) VALUES (?, ?, ?, ?)")
	deletePending = shard.SQL("DELETE FROM claim_pending_# WHERE user_id = ? AND campaign_id = ? AND request_no = ?")

	moveClaim   = shard.SQL("UPDATE claim_# SET coupon_id = ? WHERE user_id = ? AND campaign_id = ? AND request_no = ? AND coupon_id = ? AND done = 0")
	finishClaim = shard.SQL("UPDATE claim_# SET done = 1 WHERE user_id = ? AND campaign_id = ? AND request_no = ? AND coupon_id = ? AND done = 0")
	dropClaim   = shard.SQL("DELETE FROM claim_# WHERE user_id = ? AND campaign_id = ? AND request_no = ? AND coupon_id = ? AND done = 0")
)

func scanClaim(row scanner) (c coupon.Claim, err error) {
	err = row.Scan(&c.User, &c.Campaign, &c.Request, &c.Number, &c.Coupon, &c.Done, timeColumn{&c.At})
	return c, err
}

// Claims returns a user's claims and binds of a campaign, by rising number.
func (r rows) Claims(user string, campaign int64) ([]coupon.Claim, error) {
	return all(r, scanClaim, selectClaims, user, campaign)
}

// Pending returns up to n claims that are not done and older than before, the
// oldest first.
func (r rows) Pending(before time.Time, n int) ([]coupon.Claim, error) {
	return all(r, scanClaim, selectPending, millis(before), n)
}

// PutClaim adds a claim.
func (t tx) PutClaim(c coupon.Claim) error {
	err := t.write.Queue(insertClaim, c.User, c.Campaign, c.Request, unless(c.Number), c.Coupon, c.Done, millis(c.At))
	if err != nil || c.Done {
		return err
	}
	return t.write.Queue(insertPending, c.User, c.Campaign, c.Request, millis(c.At))
}

// MoveClaim gives a pending claim of the coupon from another one.
func (t tx) MoveClaim(c coupon.Claim, from coupon.ID) (bool, error) {
	return t.changed(moveClaim, c.Coupon, c.User, c.Campaign, c.Request, from)
}

// FinishClaim makes a pending claim of the coupon done.
func (t tx) FinishClaim(c coupon.Claim) (bool, error) { return t.settle(finishClaim, c) }

// DropClaim removes a pending claim of the coupon.
func (t tx) DropClaim(c coupon.Claim) (bool, error) { return t.settle(dropClaim, c) }

// settle runs a statement that ends the pending of a claim, if it matches.
func (t tx) settle(s shard.Statement, c coupon.Claim) (bool, error) {
	settled, err := t.changed(s, c.User, c.Campaign, c.Request, c.Coupon)
	if err != nil || !settled {
		return false, err
	}
	return t.changed(deletePending, c.User, c.Campaign, c.Request)
}
