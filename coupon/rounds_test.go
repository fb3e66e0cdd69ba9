package coupon_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

func TestRoundsUseEachShardAndEachBucketOnce(t *testing.T) {
	for seed := range uint64(20) {
		r := coupon.NewRounds(rand.New(rand.NewPCG(seed, 0)))
		for cycle := range 3 {
			buckets := map[shard.Bucket]bool{}
			for range shard.Buckets / shard.Count {
				shards := map[shard.Shard]bool{}
				for range shard.Count {
					b := r.Next()
					buckets[b] = true
					shards[b.Shard()] = true
				}
				if len(shards) != shard.Count {
					t.Fatalf("seed %d, cycle %d: a round has %d shards", seed, cycle, len(shards))
				}
			}
			if len(buckets) != shard.Buckets {
				t.Fatalf("seed %d: cycle %d has %d buckets", seed, cycle, len(buckets))
			}
		}
	}
}

// TestRoundsAreFresh counts where in its round each shard comes, and in which
// round of 32 each upper part.
func TestRoundsAreFresh(t *testing.T) {
	r := coupon.NewRounds(rand.New(rand.NewPCG(5, 6)))
	places, rounds := make([]int, shard.Count), make([]int, shard.Count)
	for i := range 1000 * shard.Buckets {
		b := r.Next()
		if b.Shard() == 9 {
			places[i%shard.Count]++
		}
		if b == 9 {
			rounds[i/shard.Count%shard.Count]++
		}
	}
	if c := chiSquare(places); c > 84 {
		t.Errorf("the places of shard 9 have a chi-square of %.0f", c)
	}
	if c := chiSquare(rounds); c > 84 {
		t.Errorf("the rounds of bucket 9 have a chi-square of %.0f", c)
	}
}

func TestRoundsDifferWithoutASeed(t *testing.T) {
	a, b := coupon.NewRounds(nil), coupon.NewRounds(nil)
	same := 0
	for range shard.Buckets {
		if a.Next() == b.Next() {
			same++
		}
	}
	if same > 30 { // 1 is to be expected
		t.Errorf("%d of 1,024 buckets are the same", same)
	}
}
