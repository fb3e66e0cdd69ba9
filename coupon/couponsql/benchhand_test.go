package couponsql_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

// The statements as somebody would write them who needs just these. # is the
// shard.
const (
	handFence  = "SELECT epoch, UTC_TIMESTAMP(3) FROM shard_fence WHERE shard = ? LOCK IN SHARE MODE"
	handSelect = "SELECT campaign_id, code, status, version, body FROM coupon_# WHERE id = ? FOR UPDATE"
	handUpdate = "UPDATE coupon_# SET status = ?, version = ?, body = ? WHERE id = ?"
	handLedger = "INSERT INTO ledger_# (coupon_id, version, waiting, at, once, event) VALUES (?, ?, 1, ?, ?, ?)"
	handClaims = "SELECT request_no, number, coupon_id, done FROM claim_# WHERE user_id = ? AND campaign_id = ?"
	handClaim  = "INSERT INTO claim_# (user_id, campaign_id, request_no, number, coupon_id, done, at) VALUES (?, ?, ?, ?, ?, 1, ?)"
	handWallet = `INSERT INTO user_coupon_# (user_id, coupon_id, valid_until, status, version, campaign_id, code, order_no, value_minor, currency,
		valid_from, reserved_until, redeemed_order, redeemed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE status = IF(VALUES(version) > version, VALUES(status), status), version = GREATEST(version, VALUES(version))`
)

// handBody and handEvent are as long as the platform's.
var (
	handBody  = `{"user":"user-12-345","issued_at":1796000000000,` + strings.Repeat(`"field":"value",`, 10) + `"end":0}`
	handEvent = `{"type":"REDEEMED","at":1796000000000,` + strings.Repeat(`"field":"value",`, 20) + `"end":0}`
)

// A handTx is a transaction on a shard, around the platform.
type handTx struct {
	*sql.Tx
	ctx context.Context
	on  shard.Shard
}

func (t handTx) text(s string) string { return strings.ReplaceAll(s, "#", fmt.Sprintf("%02d", t.on)) }

// must runs a statement that has to match a row.
func (t handTx) must(s string, args ...any) error {
	result, err := t.ExecContext(t.ctx, t.text(s), args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return fmt.Errorf("no row: %w", err)
	}
	return nil
}

func (n *bench) byHand(ctx context.Context, key shard.Key, fn func(handTx) error) error {
	s := key.Bucket().Shard()
	tx, err := n.raw[n.cluster.Map().Shards[s].Database].BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(handTx{tx, ctx, s}); err != nil {
		return err
	}
	return tx.Commit()
}

// fence reads the fence and the clock.
func (t handTx) fence() (now time.Time, err error) {
	var epoch int64
	err = t.QueryRowContext(t.ctx, handFence, t.on).Scan(&epoch, &now)
	return now, err
}

// change writes coupon and ledger.
func (t handTx) change(c coupon.Coupon, e coupon.Event) error {
	if err := t.must(handUpdate, c.Status, c.Version, handBody, c.ID); err != nil {
		return err
	}
	return t.must(handLedger, c.ID, c.Version, e.At.UnixMilli(), e.Once(), handEvent)
}

func (n *bench) redeemByHand(ctx context.Context, c coupon.Coupon, order int64) (next coupon.Coupon, err error) {
	err = n.byHand(ctx, c.ID, func(t handTx) error {
		now, err := t.fence()
		if err != nil {
			return err
		}
		var campaign, status, version int64
		var code string
		var body []byte
		if err := t.QueryRowContext(ctx, t.text(handSelect), c.ID).Scan(&campaign, &code, &status, &version, &body); err != nil {
			return err
		}
		var e coupon.Event
		next, e = step(c, order, now)
		return t.change(next, e)
	})
	return next, err
}

func (n *bench) claimByHand(ctx context.Context, c coupon.Coupon, order int64) (next coupon.Coupon, err error) {
	campaign := n.campaign.Add(1)
	err = n.byHand(ctx, c.ID, func(t handTx) error {
		now, err := t.fence()
		if err != nil {
			return err
		}
		made, err := t.QueryContext(ctx, t.text(handClaims), c.User, campaign)
		if err != nil {
			return err
		}
		if err := made.Close(); err != nil {
			return err
		}
		if err := t.must(handClaim, c.User, campaign, "request", 1, c.ID, now.UnixMilli()); err != nil {
			return err
		}
		var e coupon.Event
		next, e = step(c, order, now)
		if err := t.change(next, e); err != nil {
			return err
		}
		return t.must(handWallet, c.User, c.ID, c.Valid.Until.UnixMilli(), next.Status, next.Version, c.Campaign, c.Code.Symbols(), "",
			c.Value.Minor, c.Value.Currency, 0, 0, next.RedeemedOrder, now.UnixMilli())
	})
	return next, err
}

// updateAndInsert is the least that leaves a trace.
func (n *bench) updateAndInsert(ctx context.Context, c coupon.Coupon, order int64) (next coupon.Coupon, err error) {
	err = n.byHand(ctx, c.ID, func(t handTx) error {
		var e coupon.Event
		next, e = step(c, order, time.UnixMilli(1796000000000))
		return t.change(next, e)
	})
	return next, err
}
