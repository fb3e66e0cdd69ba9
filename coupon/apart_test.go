package coupon

import (
	"fmt"
	"testing"

	"github.com/tallystick/tallystick/shard"
)

// TestShardsAtATimeAreOfDifferentDatabases takes shards as long work does, several
// at a time, where databases have equal runs of them.
func TestShardsAtATimeAreOfDifferentDatabases(t *testing.T) {
	for _, databases := range []int{2, 4, 8, 16, 32} {
		t.Run(fmt.Sprint(databases, " databases"), func(t *testing.T) {
			seen := map[shard.Shard]bool{}
			for from := 0; from < shard.Count; from += databases {
				busy := map[int]bool{}
				for i := range databases {
					s := apart(from + i)
					seen[s] = true
					busy[int(s)*databases/shard.Count] = true
				}
				if len(busy) != databases {
					t.Errorf("%d databases are written from turn %d on, want %d", len(busy), from, databases)
				}
			}
			if len(seen) != shard.Count {
				t.Errorf("%d shards have a turn, want all", len(seen))
			}
		})
	}
}
