package coupon

import (
	"math/rand/v2"

	"github.com/tallystick/tallystick/shard"
)

// Rounds says in which buckets the coupons of a pool go. Of every 32 buckets in
// a row, counted from the first, each is of another shard, in random order; of
// every 1,024 each is another bucket. So however many are made, no shard has
// more than one coupon more than any other; and as the order is random, neither
// have those who take every second or eighth, but for chance.
//
// It is not safe for concurrent use: each job has its own.
type Rounds struct {
	rng    *rand.Rand
	shards [shard.Count]uint8           // of this round
	uppers [shard.Count][perShard]uint8 // of each shard, for 32 rounds: the bits of the bucket above the shard's
	next   int                          // buckets given of the 1,024
}

const perShard = shard.Buckets / shard.Count

// NewRounds returns rounds in an order that nobody can foresee, or in the one
// that rng gives if it is not nil.
func NewRounds(rng *rand.Rand) *Rounds {
	if rng == nil {
		rng = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	r := &Rounds{rng: rng}
	for i := range r.shards {
		r.shards[i] = uint8(i)
		for j := range r.uppers[i] {
			r.uppers[i][j] = uint8(j)
		}
	}
	return r
}

// Next returns the next bucket.
func (r *Rounds) Next() shard.Bucket {
	round, place := r.next/shard.Count, r.next%shard.Count
	if r.next == 0 {
		for i := range r.uppers {
			shuffle(r.rng, r.uppers[i][:])
		}
	}
	if place == 0 {
		shuffle(r.rng, r.shards[:])
	}
	r.next = (r.next + 1) % shard.Buckets
	s := r.shards[place]
	return shard.Bucket(r.uppers[s][round])*shard.Count + shard.Bucket(s)
}

func shuffle(rng *rand.Rand, x []uint8) {
	rng.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] })
}
