package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tallystick/tallystick/shard"
)

// handBody is what else a coupon of the order has.
const handBody = `{"order":"o-1000000","issued_at":1796000000000,"valid_from":1796000000000,"valid_until":1799000000000,"kind":"FIXED_AMOUNT","value_minor":500,"currency":"EUR","void_kind":"RESTORE","updated":1796000000000}`

// How the order is issued by hand: as ours is, but for where the rows are.
const (
	handChunk   = 497
	handWriters = 8
)

// issueByHand issues the order as one would if the order's number chose the shard:
// all its coupons are rows of one table, written when the order comes, because
// before that nobody knows where they belong.
func (w *orderWorld) issueByHand(t *testing.T) {
	t.Helper()
	home := shard.Text(w.order).Bucket().Shard()
	database := fmt.Sprintf("shard%d", int(home)/shardsPerDatabase)
	for _, text := range []string{
		fmt.Sprintf("create table %s.by_order like %[1]s.coupon_%02d", database, home),
		fmt.Sprintf("alter table %s.by_order add order_no varchar(64) not null, add key order_no (order_no, id)", database),
		fmt.Sprintf("create table %s.by_order_chunk like %[1]s.chunk_%02d", database, home),
	} {
		if _, err := w.plain.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	var next atomic.Int64
	var writers sync.WaitGroup
	for range handWriters {
		writers.Go(func() {
			for {
				first := next.Add(handChunk) - handChunk
				if first >= w.coupons || t.Failed() {
					return
				}
				if err := w.handChunk(t.Context(), database, first, min(handChunk, w.coupons-first)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	var n int64
	if err := w.plain.QueryRowContext(t.Context(), "select count(*) from "+database+".by_order where order_no = ?", w.order).Scan(&n); err != nil || n != w.coupons {
		t.Errorf("%d rows by hand, %v, want %d", n, err, w.coupons)
	}
}

// handChunk writes some coupons of the order, and that it did.
func (w *orderWorld) handChunk(ctx context.Context, database string, first, n int64) error {
	tx, err := w.plain.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(ctx, fmt.Sprintf(`insert into %s.by_order (id, code, campaign_id, status, version, order_no, created_at, body)
		select ? + seq, concat('H', lpad(? + seq, 15, '0')), 1, 1, 2, ?, 1, ? from seq_1_to_%d`, database, n),
		first, first, w.order, handBody)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "insert into "+database+".by_order_chunk (campaign_id, batch_no, chunk, ids) values (1, 'b', ?, '')", first/handChunk); err != nil {
		return err
	}
	return tx.Commit()
}
