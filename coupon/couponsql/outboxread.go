package couponsql

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

var (
	selectOldest  = shard.SQL("SELECT id, coupon_id, version, payload FROM outbox_# ORDER BY id LIMIT ?")
	selectWaiting = shard.SQL("SELECT COUNT(*) FROM (SELECT id FROM outbox_# ORDER BY id LIMIT ?) AS some")

	// From the list to the outbox, never the other way round: a scan would wait for
	// rows that are not committed yet.
	deleteListed = wording{
		mariadb: shard.SQL("DELETE c FROM " + mariadbList + " AS list STRAIGHT_JOIN outbox_# AS c ON c.id = list.id"),
		sqlite:  shard.SQL("DELETE FROM outbox_# WHERE id IN (SELECT id FROM " + sqliteList + ")"),
	}

	selectRelay = worded("SELECT token, epoch, deadline FROM relay_# WHERE id = 1 {lock}")
	insertRelay = shard.SQL("INSERT INTO relay_# (id, token, epoch, deadline) VALUES (1, ?, ?, ?)")
	updateRelay = shard.SQL("UPDATE relay_# SET token = ?, epoch = ?, deadline = ? WHERE id = 1")
	renewRelay  = shard.SQL("UPDATE relay_# SET deadline = ? WHERE id = 1 AND token = ? AND epoch = ?")
)

// An Outbox is a [coupon.Outbox] on the shards of a cluster. It is safe for
// concurrent use.
type Outbox struct{ cluster *shard.Cluster }

var _ coupon.Outbox = (*Outbox)(nil)

// NewOutbox returns the outbox of a cluster whose shards [Open] has brought up to
// date.
func NewOutbox(c *shard.Cluster) *Outbox { return &Outbox{c} }

// Oldest returns up to n committed rows of a shard with the smallest numbers.
func (o *Outbox) Oldest(ctx context.Context, at shard.Shard, n int) (oldest []coupon.OutboxRow, err error) {
	scan := func(row scanner) (r coupon.OutboxRow, err error) {
		err = row.Scan(&r.Number, &r.Coupon, &r.Version, &r.Payload)
		return r, err
	}
	err = o.cluster.Read(ctx, at, func(r *shard.Reader) (err error) {
		oldest, err = all(rows{r}, scan, selectOldest, n)
		return err
	})
	return oldest, err
}

// Waiting counts the rows of a shard, up to max.
func (o *Outbox) Waiting(ctx context.Context, at shard.Shard, max int) (n int, err error) {
	err = o.cluster.Read(ctx, at, func(r *shard.Reader) error {
		return r.QueryRow(selectWaiting, max).Scan(&n)
	})
	return n, err
}

// Lease gives the relay of a shard to the holder of a token, and reports whether.
func (o *Outbox) Lease(ctx context.Context, at shard.Shard, token string, ttl time.Duration) (lease coupon.RelayLease, mine bool, err error) {
	err = o.cluster.Write(ctx, at, func(w *shard.Tx) error {
		t := newTx(w)
		before, err := t.relay()
		if err != nil {
			return err
		}
		if lease, mine = before.Take(token, t.Now(), ttl); !mine {
			return nil
		}
		if before.Epoch == 0 {
			mine, err = t.added(insertRelay, lease.Token, lease.Epoch, millis(lease.Until))
			return err
		}
		_, err = t.write.Exec(updateRelay, lease.Token, lease.Epoch, millis(lease.Until))
		return err
	})
	return lease, mine && err == nil, err
}

// relay returns who relays the shard, and keeps that as it is until the end of the
// transaction.
func (t tx) relay() (l coupon.RelayLease, err error) {
	err = t.QueryRow(t.in(selectRelay)).Scan(&l.Token, &l.Epoch, timeColumn{&l.Until})
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return l, err
}

// Remove removes rows of a shard and renews the lease.
func (o *Outbox) Remove(ctx context.Context, at shard.Shard, lease coupon.RelayLease, removed []coupon.OutboxRow, ttl time.Duration) error {
	refs := make([]coupon.Ref, len(removed))
	for i, r := range removed {
		refs[i].ID = coupon.ID(r.Number) // a list has ids, of whatever
	}
	return o.cluster.Write(ctx, at, func(w *shard.Tx) error {
		t := newTx(w)
		mine, err := t.changed(renewRelay, millis(t.Now().Add(ttl)), lease.Token, lease.Epoch)
		if err == nil && !mine {
			err = coupon.ErrLeaseLost
		}
		if err != nil {
			return err
		}
		_, err = t.write.Exec(t.in(deleteListed), list(refs))
		return err
	})
}
