package migrate

import (
	"testing"

	"pgregory.net/rapid"
)

func TestAFrontierHasNoGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "pages")
		done := make(map[int]bool, n)
		pages := make([]int, n)
		for i := range pages {
			pages[i] = i
		}
		var f frontier
		next := int64(0)
		for _, p := range rapid.Permutation(pages).Draw(t, "order") {
			done[p] = true
			for _, o := range f.join(p, outcome{compared: int64(p)}) {
				if o.compared != next || !done[int(next)] {
					t.Fatalf("page %d came out where %d is due", o.compared, next)
				}
				next++
			}
			if done[int(next)] {
				t.Fatalf("page %d was held back", next)
			}
		}
		if len(f.ahead) > 0 {
			t.Fatalf("%d pages are left", len(f.ahead))
		}
	})
}
