package couponsql

import (
	"context"
	"errors"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

const (
	operationColumns = "id, kind, subject, campaign_id, batch_no, open_subject IS NULL, total, succeeded, failed, error"
	selectOperation  = "SELECT " + operationColumns + " FROM operation WHERE id = ?"
	selectOpen       = "SELECT " + operationColumns + " FROM operation WHERE kind = ? AND open_subject = ?"
	selectLeasable   = "SELECT " + operationColumns + " FROM operation WHERE lease_until <= ? ORDER BY lease_until, id LIMIT 1"
	leaseOperation   = "UPDATE operation SET lease_owner = ?, lease_until = ? WHERE id = ?"
	insertOperation  = `INSERT INTO operation (id, kind, subject, campaign_id, batch_no, open_subject, total, succeeded, failed, error, lease_until)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	saveOperation = `UPDATE operation SET open_subject = ?, total = ?, succeeded = ?, failed = ?, error = ?, lease_owner = ?, lease_until = ?
		WHERE id = ? AND lease_owner = ? AND open_subject IS NOT NULL`
)

// startTries is how often [Control.StartOperation] tries when an operation is in
// its way that is done when it looks.
const startTries = 3

func scanOperation(row scanner) (o coupon.Operation, err error) {
	err = row.Scan(&o.ID, &o.Kind, &o.Subject, &o.Campaign, &o.Batch, &o.Done, &o.Total, &o.Succeeded, &o.Failed, &o.Error)
	return o, err
}

// openAs returns the subject and the lease of an operation that is not done, and
// NULL for both otherwise.
func openAs(o coupon.Operation, leaseUntil time.Time) (subject, lease any) {
	if o.Done {
		return nil, nil
	}
	return o.Subject, millis(leaseUntil)
}

// StartOperation adds an operation unless one of the same kind and subject is
// there that is not done, and returns the one that is there then. An id that
// another operation has is [shard.ErrDuplicate].
func (c *Control) StartOperation(ctx context.Context, o coupon.Operation) (there coupon.Operation, err error) {
	for range startTries {
		err = c.write(ctx, func(s session) (err error) {
			there, err = s.start(o)
			return err
		})
		if !errors.Is(err, shard.ErrDuplicate) {
			break
		}
	}
	return there, err
}

// start makes one attempt. What is in its way it looks for in the same
// transaction: others may not see it yet.
func (s session) start(o coupon.Operation) (coupon.Operation, error) {
	now, err := s.now()
	if err != nil {
		return o, err
	}
	subject, lease := openAs(o, now) // it waits from now on, behind what waits already
	_, err = s.exec(insertOperation, o.ID, o.Kind, o.Subject, o.Campaign, o.Batch, subject,
		o.Total, o.Succeeded, o.Failed, o.Error, lease)
	if !errors.Is(err, shard.ErrDuplicate) {
		return o, err
	}
	there, missing := one(s.row(selectOpen, o.Kind, o.Subject), scanOperation)
	if errors.Is(missing, coupon.ErrNoRow) {
		return o, err
	}
	return there, missing
}

// Operation returns an operation, or [coupon.ErrNoRow].
func (c *Control) Operation(ctx context.Context, id int64) (o coupon.Operation, err error) {
	err = c.read(ctx, func(s session) (err error) {
		o, err = one(s.row(selectOperation, id), scanOperation)
		return err
	})
	return o, err
}

// LeaseOperation gives the operation that has waited longest to owner.
func (c *Control) LeaseOperation(ctx context.Context, owner string, ttl time.Duration) (o coupon.Operation, err error) {
	err = c.write(ctx, func(s session) error {
		now, err := s.now()
		if err != nil {
			return err
		}
		o, err = one(s.row(selectLeasable+lock(s.dialect), millis(now)), scanOperation)
		if err != nil {
			return err
		}
		_, err = s.exec(leaseOperation, owner, millis(now.Add(ttl)), o.ID)
		return err
	})
	return o, err
}

// SaveOperation stores progress and prolongs owner's lease if owner had it last,
// over or not: nobody else has it then.
func (c *Control) SaveOperation(ctx context.Context, o coupon.Operation, owner string, ttl time.Duration) (held bool, err error) {
	err = c.write(ctx, func(s session) error {
		now, err := s.now()
		if err != nil {
			return err
		}
		subject, lease := openAs(o, now.Add(ttl))
		n, err := s.exec(saveOperation, subject, o.Total, o.Succeeded, o.Failed, o.Error, owner, lease, o.ID, owner)
		held = n > 0
		return err
	})
	return held, err
}
