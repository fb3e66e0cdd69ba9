package coupon_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/shard"
)

// chiLimit is what a chi-square of 31 degrees of freedom exceeds by chance once
// in a million times.
const chiLimit = 84

// A stream is 32,000 ids that come in at random moments at a mean rate.
type stream struct {
	rate       float64 // a second; 0: at once
	generators int
}

func (s stream) String() string {
	if s.rate == 0 {
		return fmt.Sprintf("flat out, generators: %d", s.generators)
	}
	return fmt.Sprintf("%.0f a second, generators: %d", s.rate, s.generators)
}

func streams() []stream {
	var all []stream
	for _, rate := range []float64{1, 58, 10_000, 0} {
		all = append(all, stream{rate, 1}, stream{rate, 8})
	}
	return all
}

// run calls next for each id, with the number of a random generator, and returns
// the shards of the ids.
func (s stream) run(rng *rand.Rand, next func(generator int) int64) []int {
	shards := make([]int, 32_000)
	for i := range shards {
		if s.rate > 0 {
			time.Sleep(time.Duration(rng.ExpFloat64() / s.rate * float64(time.Second)))
		}
		shards[i] = int(next(rng.IntN(s.generators)) % shard.Count)
	}
	return shards
}

// unevenness is how unevenly ids are spread over the shards.
type unevenness struct {
	gap int     // between the fullest and the emptiest shard
	chi float64 // the largest chi-square of every k-th id, k from first to 8
	k   int     // where that was
}

func measure(shards []int, first int) unevenness {
	var u unevenness
	for k := 1; k <= 8; k++ {
		counts := make([]int, shard.Count)
		for i := k - 1; i < len(shards); i += k {
			counts[shards[i]]++
		}
		if k == 1 {
			u.gap = slices.Max(counts) - slices.Min(counts)
		}
		if chi := chiSquare(counts); k >= first && chi > u.chi {
			u.chi, u.k = chi, k
		}
	}
	return u
}

// evenPool reports whether the ids of a pool are spread as they have to be.
func (u unevenness) evenPool(generators int) bool { return u.gap <= 2*generators && u.chi < chiLimit }

func TestPoolsAreSpreadEvenly(t *testing.T) {
	for _, s := range streams() {
		t.Run(s.String(), func(t *testing.T) {
			in2026(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(11, 12))
				minters := openMinters(t, s.generators)
				var rounds []*coupon.Rounds
				for range s.generators {
					rounds = append(rounds, coupon.NewRounds(rng))
				}
				seen := map[int64]bool{}
				u := measure(s.run(rng, func(g int) int64 {
					id := mintID(t, minters[g], rounds[g].Next())
					seen[id] = true
					return id
				}), 2)
				t.Logf("fullest - emptiest: %d; chi-square at most %.1f, of every %d. id", u.gap, u.chi, u.k)
				if !u.evenPool(s.generators) || len(seen) != 32_000 {
					t.Errorf("%+v; %d different ids", u, len(seen))
				}
			})
		})
	}
}

func TestDirectIssueIsSpreadEvenly(t *testing.T) {
	for _, s := range streams() {
		t.Run(s.String(), func(t *testing.T) {
			in2026(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(13, 14))
				minters := openMinters(t, s.generators)
				seen := map[int64]bool{}
				u := measure(s.run(rng, func(g int) int64 {
					user := shard.Text(fmt.Sprintf("user-%d", rng.Uint64()))
					id := mintID(t, minters[g], user.Bucket())
					seen[id] = true
					return id
				}), 1)
				t.Logf("fullest - emptiest: %d; chi-square at most %.1f, of every %d. id", u.gap, u.chi, u.k)
				if u.chi >= chiLimit || len(seen) != 32_000 {
					t.Errorf("%+v; %d different ids", u, len(seen))
				}
			})
		})
	}
}

// TestPlainSnowflakeIsNotSpreadEvenly gives the test of pools ids that are not.
// At any rate below what it can make its sequences end before they have gone round
// the shards, and both parts of the test fail: the gap between shards, and the
// spread of every k-th id. Flat out each ms's sequence is 4,096 ids, which is 128
// rounds, one shard after the other: the gap is none, but whoever takes every
// second id finds half the shards empty. What eight generators make flat out at
// the same time passes as a whole, as chance mixes them, and fails generator by
// generator, which is what a job gets.
func TestPlainSnowflakeIsNotSpreadEvenly(t *testing.T) {
	for _, s := range streams() {
		t.Run(s.String(), func(t *testing.T) {
			in2026(t, func(t *testing.T) {
				all, own := plainSnowflake(t, s)
				for g, shards := range own {
					if u := measure(shards, 2); u.chi < chiLimit {
						t.Errorf("every k-th id of generator %d is spread evenly: %+v", g, u)
					}
				}
				u := measure(all, 2)
				t.Logf("fullest - emptiest: %d; chi-square at most %.1f, of every %d. id", u.gap, u.chi, u.k)
				flatOut, one := s.rate == 0, s.generators == 1
				if even := u.gap <= 2*s.generators; even != flatOut {
					t.Errorf("%+v; the gap of a pool: %v", u, even)
				}
				if even := u.chi < chiLimit; even != (flatOut && !one) {
					t.Errorf("%+v; every k-th id evenly: %v", u, even)
				}
			})
		})
	}
}

// plainSnowflake returns the shards of all ids and of each generator's.
func plainSnowflake(t *testing.T, s stream) (all []int, own [][]int) {
	rng := rand.New(rand.NewPCG(15, 16))
	nodes := make([]plainNode, s.generators)
	own = make([][]int, s.generators)
	for i := range nodes {
		var err error
		if nodes[i].node, err = snowflake.NewNode(int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	all = s.run(rng, func(g int) int64 {
		id := nodes[g].next()
		own[g] = append(own[g], int(id%shard.Count))
		return id
	})
	return all, own
}

// A plainNode is a plain Snowflake that makes ids as fast as it may: 4,096 a ms.
type plainNode struct {
	node *snowflake.Node
	ms   int64
	made int // in that ms
}

// next returns the next id. The generator itself spins until the clock goes on,
// which it never does in a bubble whose goroutines are busy.
func (n *plainNode) next() int64 {
	if now := time.Now().UnixMilli(); now != n.ms {
		n.ms, n.made = now, 0
	}
	if n.made == 1<<snowflake.StepBits {
		time.Sleep(time.Millisecond)
		n.ms, n.made = time.Now().UnixMilli(), 0
	}
	n.made++
	return n.node.Generate().Int64()
}

func openMinters(t *testing.T, n int) []*coupon.Minter {
	workers := new(coupontest.Workers)
	var minters []*coupon.Minter
	for range n {
		minters = append(minters, openMinter(t, workers, coupon.MinterSetup{}))
	}
	return minters
}

func mintID(t *testing.T, m *coupon.Minter, b shard.Bucket) int64 {
	id, err := m.Mint(b)
	if err != nil {
		t.Fatal(err)
	}
	return int64(id)
}
