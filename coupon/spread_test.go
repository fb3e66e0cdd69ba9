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
// Flat out it fills its sequences, which are even, and fails by every k-th id
// only; its generator then spins until the clock goes on, which it does not in a
// bubble.
func TestPlainSnowflakeIsNotSpreadEvenly(t *testing.T) {
	for _, s := range streams() {
		if s.rate > 0 {
			t.Run(s.String(), func(t *testing.T) {
				in2026(t, func(t *testing.T) { plainSnowflake(t, s) })
			})
		}
	}
}

func plainSnowflake(t *testing.T, s stream) {
	rng := rand.New(rand.NewPCG(15, 16))
	var nodes []*snowflake.Node
	for i := range s.generators {
		node, err := snowflake.NewNode(int64(i))
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, node)
	}
	u := measure(s.run(rng, func(g int) int64 { return nodes[g].Generate().Int64() }), 2)
	t.Logf("fullest - emptiest: %d; chi-square at most %.1f, of every %d. id", u.gap, u.chi, u.k)
	if u.evenPool(s.generators) {
		t.Errorf("it passes: %+v", u)
	}
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
