package couponsql

import (
	"database/sql"
	"errors"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

var (
	selectStock = shard.SQL("SELECT id, code FROM coupon_# WHERE campaign_id = ? AND id > ? AND status = 0 ORDER BY id LIMIT ?")

	selectCursor = worded("SELECT last_id FROM pool_# WHERE campaign_id = ? {lock}")
	insertCursor = shard.SQL("INSERT INTO pool_# (campaign_id, last_id) VALUES (?, 0)")
	updateCursor = shard.SQL("UPDATE pool_# SET last_id = ? WHERE campaign_id = ?")
	selectNext   = shard.SQL("SELECT id, code, status FROM coupon_# WHERE campaign_id = ? AND id > ? ORDER BY id LIMIT ?")
)

// Stock returns up to n available coupons of a campaign above after.
func (r rows) Stock(campaign int64, after coupon.ID, n int) ([]coupon.Ref, error) {
	scan := func(row scanner) (ref coupon.Ref, err error) {
		err = row.Scan(&ref.ID, codeColumn{&ref.Code})
		return ref, err
	}
	return all(r, scan, selectStock, campaign, after, n)
}

// Advance moves the campaign's cursor. The lock on it is held until the end of
// the transaction, so that no two are given the same stretch.
func (t tx) Advance(campaign int64, n int) (refs []coupon.Ref, end bool, err error) {
	last, err := t.cursor(campaign)
	if err != nil {
		return nil, false, err
	}
	passed := 0
	_, err = all(t.rows, func(row scanner) (none struct{}, err error) {
		var ref coupon.Ref
		var status coupon.Status
		if err = row.Scan(&ref.ID, codeColumn{&ref.Code}, &status); err != nil {
			return none, err
		}
		if status == coupon.Available {
			refs = append(refs, ref)
		}
		passed, last = passed+1, ref.ID
		return none, nil
	}, selectNext, campaign, last, n)
	if err != nil || passed == 0 {
		return nil, err == nil, err
	}
	_, err = t.write.Exec(updateCursor, last, campaign)
	return refs, passed < n, err
}

// cursor returns where the cursor is, and locks it.
func (t tx) cursor(campaign int64) (last coupon.ID, err error) {
	err = t.QueryRow(t.in(selectCursor), campaign).Scan(&last)
	if !errors.Is(err, sql.ErrNoRows) {
		return last, err
	}
	if _, err := t.added(insertCursor, campaign); err != nil {
		return 0, err
	}
	return last, t.QueryRow(t.in(selectCursor), campaign).Scan(&last)
}
