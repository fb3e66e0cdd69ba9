package couponsql

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

const batchColumns = "campaign_id, batch_no, order_no, quantity, user_id, quota, dry, at, pending_since IS NULL, version"

var (
	selectBatch          = shard.SQL("SELECT " + batchColumns + " FROM batch_# WHERE campaign_id = ? AND batch_no = ?")
	selectPendingBatches = shard.SQL("SELECT " + batchColumns + " FROM batch_# WHERE pending_since < ? ORDER BY pending_since LIMIT ?")

	insertBatch = shard.SQL(`INSERT INTO batch_# (campaign_id, batch_no, order_no, quantity, user_id, quota, dry, at, pending_since, version)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	updateBatch = shard.SQL(`UPDATE batch_# SET order_no = ?, quantity = ?, user_id = ?, quota = ?, dry = ?, at = ?, pending_since = ?, version = ?
		WHERE campaign_id = ? AND batch_no = ? AND version = ?`)

	selectChunks = shard.SQL("SELECT chunk, ids FROM chunk_# WHERE campaign_id = ? AND batch_no = ? ORDER BY chunk")
	insertChunk  = shard.SQL("INSERT INTO chunk_# (campaign_id, batch_no, chunk, ids) VALUES (?, ?, ?, ?)")

	selectOrderBatches = shard.SQL("SELECT campaign_id, batch_no FROM order_batch_# WHERE order_no = ? ORDER BY campaign_id, batch_no")
	insertOrderBatch   = shard.SQL("INSERT INTO order_batch_# (order_no, campaign_id, batch_no) VALUES (?, ?, ?)")
)

func scanBatch(row scanner) (b coupon.Batch, err error) {
	var quota []byte
	var dry uint32
	err = row.Scan(&b.Campaign, &b.Number, &b.Order, &b.Count, &b.User, &quota, &dry, timeColumn{&b.At}, &b.Done, &b.Version)
	if err != nil {
		return b, err
	}
	for s := range b.Dry {
		b.Dry[s] = dry>>s&1 == 1
	}
	if err := json.Unmarshal(quota, &b.Quota); err != nil {
		return b, fmt.Errorf("couponsql: quota of batch %s of campaign %d: %w", b.Number, b.Campaign, err)
	}
	return b, nil
}

// batchArgs returns what may change of a batch.
func batchArgs(b coupon.Batch) []any {
	quota, _ := json.Marshal(b.Quota) // numbers: cannot fail
	var dry uint32
	for s, is := range b.Dry {
		if is {
			dry |= 1 << s
		}
	}
	var pendingSince any
	if !b.Done {
		pendingSince = millis(b.At)
	}
	return []any{b.Order, b.Count, b.User, string(quota), dry, millis(b.At), pendingSince, b.Version}
}

// Batch returns a batch, or [coupon.ErrNoRow].
func (r rows) Batch(campaign int64, number string) (coupon.Batch, error) {
	return one(r.QueryRow(selectBatch, campaign, number), scanBatch)
}

// PendingBatches returns up to n batches that are not done and older than before.
func (r rows) PendingBatches(before time.Time, n int) ([]coupon.Batch, error) {
	return all(r, scanBatch, selectPendingBatches, millis(before), n)
}

// PutBatch adds a batch unless it is there, and returns the one that is there
// then.
func (t tx) PutBatch(b coupon.Batch) (coupon.Batch, error) {
	fresh, err := t.added(insertBatch, append([]any{b.Campaign, b.Number}, batchArgs(b)...)...)
	if err != nil || fresh {
		return b, err
	}
	return t.Batch(b.Campaign, b.Number)
}

// SetBatch stores a batch if it has the version before.
func (t tx) SetBatch(b coupon.Batch) (bool, error) {
	return t.changed(updateBatch, append(batchArgs(b), b.Campaign, b.Number, b.Version-1)...)
}

// Chunks returns the chunks of a batch on this shard, by number.
func (r rows) Chunks(campaign int64, batch string) ([]coupon.Chunk, error) {
	scan := func(row scanner) (coupon.Chunk, error) {
		c := coupon.Chunk{BatchKey: coupon.BatchKey{Campaign: campaign, Number: batch}, Shard: r.Shard()}
		var packed []byte
		err := row.Scan(&c.Chunk, &packed)
		c.IDs = unpack(packed)
		return c, err
	}
	return all(r, scan, selectChunks, campaign, batch)
}

// PutChunk adds a chunk and reports whether it was not there yet.
func (t tx) PutChunk(c coupon.Chunk) (bool, error) {
	return t.added(insertChunk, c.Campaign, c.Number, c.Chunk, pack(c.IDs))
}

// OrderBatches returns an order's batches.
func (r rows) OrderBatches(order string) ([]coupon.BatchKey, error) {
	scan := func(row scanner) (k coupon.BatchKey, err error) {
		err = row.Scan(&k.Campaign, &k.Number)
		return k, err
	}
	return all(r, scan, selectOrderBatches, order)
}

// PutOrderBatch remembers that a batch belongs to an order.
func (t tx) PutOrderBatch(order string, key coupon.BatchKey) error {
	_, err := t.added(insertOrderBatch, order, key.Campaign, key.Number)
	return err
}

// pack returns ids as 8 bytes each.
func pack(ids []coupon.ID) []byte {
	packed := make([]byte, 0, 8*len(ids))
	for _, id := range ids {
		packed = binary.BigEndian.AppendUint64(packed, uint64(id))
	}
	return packed
}

func unpack(packed []byte) []coupon.ID {
	var ids []coupon.ID
	for ; len(packed) >= 8; packed = packed[8:] {
		ids = append(ids, coupon.ID(binary.BigEndian.Uint64(packed)))
	}
	return ids
}
