package coupontest

import (
	"testing"
	"time"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

func testBatches(t *testing.T, s *storeTest) {
	const at = shard.Shard(10)
	batch := coupon.Batch{
		BatchKey: coupon.BatchKey{Campaign: s.campaign, Number: "b/1"}, Order: "o", Count: 1_000_000, User: "u", At: day(4), Version: 1,
	}
	batch.Quota[0], batch.Quota[31], batch.Dry[31], batch.Dry[2] = 1, 999_999, true, true
	get := func(number string) (b coupon.Batch, err error) {
		err = s.Read(t.Context(), at, func(rows coupon.Rows) (err error) {
			b, err = rows.Batch(s.campaign, number)
			return err
		})
		return b, err
	}
	put := func(b, want coupon.Batch) {
		t.Helper()
		s.write(t, at, func(tx coupon.Tx) error {
			got, err := tx.PutBatch(b)
			equal(t, got, want)
			return err
		})
	}
	_, err := get("b/1")
	wantErr(t, err, coupon.ErrNoRow)
	put(batch, batch)
	other := batch
	other.Order, other.Count, other.At = "other", 5, day(5)
	put(other, batch)
	other.Number = "B/1"
	put(other, other)
	got, err := get("b/1")
	wantErr(t, err, nil)
	equal(t, got, batch)

	pending := func(before time.Time, n int) []coupon.Batch {
		return read(t, s, at, func(rows coupon.Rows) ([]coupon.Batch, error) { return rows.PendingBatches(before, n) })
	}
	equal(t, pending(day(30), 10), []coupon.Batch{batch, other})
	equal(t, pending(day(30), 1), []coupon.Batch{batch})
	equal(t, pending(day(4), 10), []coupon.Batch{})

	next := batch
	next.Version, next.Done, next.Quota[5], next.Dry[2] = 2, true, 7, false
	skipping := next
	skipping.Version, skipping.Order = 3, "skipping"
	for i, c := range []struct {
		b    coupon.Batch
		want bool
	}{{skipping, false}, {next, true}, {next, false}} {
		s.write(t, at, func(tx coupon.Tx) error {
			set, err := tx.SetBatch(c.b)
			if set != c.want {
				t.Errorf("%d: set version %d: %v, want %v", i, c.b.Version, set, c.want)
			}
			return err
		})
	}
	got, err = get("b/1")
	wantErr(t, err, nil)
	equal(t, got, next)
	equal(t, pending(day(30), 10), []coupon.Batch{other})
}

func testChunks(t *testing.T, s *storeTest) {
	const at = shard.Shard(27)
	key := coupon.BatchKey{Campaign: s.campaign, Number: "chunks"}
	chunk := func(n int, ids ...coupon.ID) coupon.Chunk {
		return coupon.Chunk{BatchKey: key, Shard: at, Chunk: n, IDs: ids}
	}
	put := func(c coupon.Chunk, want bool) {
		t.Helper()
		s.write(t, at, func(tx coupon.Tx) error {
			fresh, err := tx.PutChunk(c)
			if fresh != want {
				t.Errorf("chunk %d fresh: %v, want %v", c.Chunk, fresh, want)
			}
			return err
		})
	}
	many := chunk(10, ids(s.add(t, at, 500))...)
	one := chunk(2, 1<<63-1)
	none := chunk(0)
	put(many, true)
	put(one, true)
	put(none, true)
	put(chunk(2, 5), false)
	generated := none
	generated.Number = ""
	put(generated, true)
	equal(t, read(t, s, at, func(rows coupon.Rows) ([]coupon.Chunk, error) { return rows.Chunks(s.campaign, key.Number) }),
		[]coupon.Chunk{none, one, many})
	equal(t, read(t, s, at, func(rows coupon.Rows) ([]coupon.Chunk, error) { return rows.Chunks(s.campaign, "") }), []coupon.Chunk{generated})

	order := "order/" + s.salt
	for _, number := range []string{"2", "1", "2"} {
		s.write(t, at, func(tx coupon.Tx) error {
			return tx.PutOrderBatch(order, coupon.BatchKey{Campaign: s.campaign, Number: number})
		})
	}
	got := read(t, s, at, func(rows coupon.Rows) ([]coupon.BatchKey, error) { return rows.OrderBatches(order) })
	equal(t, got, []coupon.BatchKey{{Campaign: s.campaign, Number: "1"}, {Campaign: s.campaign, Number: "2"}})
}
