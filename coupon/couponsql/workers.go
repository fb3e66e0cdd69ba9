package couponsql

import (
	"context"
	"errors"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

const (
	selectWorkers = "SELECT number, token, high_water FROM worker ORDER BY number"
	updateWorker  = "UPDATE worker SET token = ?, high_water = ? WHERE number = ? AND token = ? AND high_water = ?"
	insertWorker  = "INSERT INTO worker (number, token, high_water) VALUES (?, ?, ?)"
)

// Workers returns the leases of worker numbers and the database's clock.
func (c *Control) Workers(ctx context.Context) (leases []coupon.Worker, now time.Time, err error) {
	scan := func(row scanner) (w coupon.Worker, err error) {
		err = row.Scan(&w.Number, &w.Token, &w.HighWater)
		return w, err
	}
	err = c.read(ctx, func(s session) (err error) {
		if leases, err = listOf(s, scan, selectWorkers); err != nil {
			return err
		}
		now, err = s.now()
		return err
	})
	return leases, now, err
}

// SwapWorker makes a lease next if it is old.
func (c *Control) SwapWorker(ctx context.Context, old, next coupon.Worker) (bool, error) {
	changed, err := c.change(ctx, updateWorker, next.Token, next.HighWater, next.Number, old.Token, old.HighWater)
	if err != nil || changed || old.HighWater != 0 {
		return changed, err
	}
	_, err = c.change(ctx, insertWorker, next.Number, next.Token, next.HighWater)
	if errors.Is(err, shard.ErrDuplicate) {
		return false, nil
	}
	return err == nil, err
}
