package couponnats_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/couponnats"
	"github.com/tallystick/tallystick/shard"
)

// BenchmarkPublish publishes batches of 200 to the server in this process, which
// has each message on the disk, from one shard and from eight at a time.
func BenchmarkPublish(b *testing.B) {
	for _, shards := range []int{1, 8} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			q, err := couponnats.Open(b.Context(), couponnats.Options{Dir: b.TempDir(), Readers: []string{"wallet"}})
			if err != nil {
				b.Fatal(err)
			}
			defer q.Close()
			var n atomic.Int64
			b.ReportAllocs()
			for b.Loop() {
				var all sync.WaitGroup
				for at := range shards {
					all.Go(func() {
						rows := make([]coupon.OutboxRow, 200)
						for i := range rows {
							rows[i] = row(int(n.Add(1)), 2)
						}
						if acked, err := q.Publish(b.Context(), shard.Shard(at), rows); len(acked) != len(rows) {
							b.Error(err)
						}
					})
				}
				all.Wait()
			}
			b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
