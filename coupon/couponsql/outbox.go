package couponsql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

var (
	selectOldest = worded(`SELECT coupon_id, version, event FROM ledger_# {by waiting}
		WHERE waiting = 1 ORDER BY at, coupon_id, version LIMIT ?`)
	selectWaiting = worded("SELECT COUNT(*) FROM (SELECT 1 FROM ledger_# {by waiting} WHERE waiting = 1 LIMIT ?) AS some")

	// What only the message had goes. From the list to the ledger, never the other
	// way round: a scan would wait for rows that are not committed yet.
	removeListed = wording{
		mariadb: shard.SQL(`UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', version BIGINT PATH '$[1]')) AS list
			STRAIGHT_JOIN ledger_# AS l ON l.coupon_id = list.id AND l.version = list.version
			SET l.waiting = 0, l.event = JSON_REMOVE(l.event, '$.coupon', '$.ids') WHERE l.waiting = 1`),
		sqlite: shard.SQL(`UPDATE ledger_# AS l SET waiting = 0, event = json_remove(event, '$.coupon', '$.ids')
			FROM (SELECT value ->> 0 AS id, value ->> 1 AS version FROM json_each(?)) AS list
			WHERE l.coupon_id = list.id AND l.version = list.version AND l.waiting = 1`),
	}

	selectRelay = worded("SELECT token, epoch, deadline FROM relay_# WHERE id = 1 {lock}")
	insertRelay = shard.SQL("INSERT INTO relay_# (id, token, epoch, deadline) VALUES (1, ?, ?, ?)")
	updateRelay = shard.SQL("UPDATE relay_# SET token = ?, epoch = ?, deadline = ? WHERE id = 1")
	renewRelay  = shard.SQL("UPDATE relay_# SET deadline = ? WHERE id = 1 AND token = ? AND epoch = ?")
)

// An Outbox is a [coupon.Outbox] on the shards of a cluster: the lines of their
// ledgers that wait. It is safe for concurrent use.
type Outbox struct{ cluster *shard.Cluster }

var _ coupon.Outbox = (*Outbox)(nil)

// NewOutbox returns the outbox of a cluster whose shards [Open] has brought up to
// date.
func NewOutbox(c *shard.Cluster) *Outbox { return &Outbox{c} }

// Oldest returns up to n committed rows of a shard, those of the oldest events.
func (o *Outbox) Oldest(ctx context.Context, at shard.Shard, n int) (oldest []coupon.OutboxRow, err error) {
	scan := func(row scanner) (r coupon.OutboxRow, err error) {
		err = row.Scan(&r.Coupon, &r.Version, &r.Payload)
		return r, err
	}
	err = o.cluster.Read(ctx, at, func(r *shard.Reader) (err error) {
		oldest, err = all(rows{r}, scan, rows{r}.in(selectOldest), n)
		return err
	})
	return oldest, err
}

// Waiting counts the rows of a shard, up to max.
func (o *Outbox) Waiting(ctx context.Context, at shard.Shard, max int) (n int, err error) {
	err = o.cluster.Read(ctx, at, func(r *shard.Reader) error {
		return r.QueryRow(rows{r}.in(selectWaiting), max).Scan(&n)
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
	return o.cluster.Write(ctx, at, func(w *shard.Tx) error {
		t := newTx(w)
		mine, err := t.changed(renewRelay, millis(t.Now().Add(ttl)), lease.Token, lease.Epoch)
		if err == nil && !mine {
			err = coupon.ErrLeaseLost
		}
		if err != nil {
			return err
		}
		_, err = t.write.Exec(t.in(removeListed), lines(removed))
		return err
	})
}

// lines returns rows as an argument, [[id,version],...] by rising key: everybody
// locks in the same order.
func lines(some []coupon.OutboxRow) string {
	keys := make([][2]int64, len(some))
	for i, r := range some {
		keys[i] = [2]int64{int64(r.Coupon), int64(r.Version)}
	}
	slices.SortFunc(keys, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	text, _ := json.Marshal(keys) // numbers: cannot fail
	return string(text)
}
