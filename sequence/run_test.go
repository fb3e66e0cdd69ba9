package sequence

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// Arithmetic is checked against math/big, which cannot overflow.

// checkMany checks prop 2,000 times instead of rapid's 100: these properties
// cost microseconds, and their edges are many.
func checkMany(t *testing.T, prop func(*rapid.T)) {
	t.Helper()
	for range 20 {
		rapid.Check(t, prop)
	}
}

func bigOf(v int64) *big.Int { return big.NewInt(v) }

// bigAt returns first + i x step.
func bigAt(first, step, i int64) *big.Int {
	v := new(big.Int).Mul(bigOf(step), bigOf(i))
	return v.Add(v, bigOf(first))
}

// bigSteps returns how many whole steps lead from a to b, which lies in the
// step's direction.
func bigSteps(a, b, step int64) *big.Int {
	d := new(big.Int).Sub(bigOf(b), bigOf(a))
	return d.Quo(d, bigOf(step))
}

// edges are the values around which arithmetic goes wrong.
var edges = []int64{math.MinInt64, math.MinInt64 + 1, math.MinInt64 / 2, -1, 0, 1, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64}

// anyInt64 draws from everywhere, with the edges and what is near them often.
func anyInt64() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64(),
		rapid.SampledFrom(edges),
		rapid.Int64Range(-20, 20),
		rapid.Int64Range(math.MinInt64, math.MinInt64+20),
		rapid.Int64Range(math.MaxInt64-20, math.MaxInt64),
	)
}

// anyStep draws an increment.
func anyStep() *rapid.Generator[int64] {
	return anyInt64().Filter(func(v int64) bool { return v != 0 })
}

// anyRun draws a valid run that is not empty, as long as int64 allows or
// shorter.
func anyRun() *rapid.Generator[Run] {
	return rapid.Custom(func(t *rapid.T) Run {
		r := Run{First: anyInt64().Draw(t, "first"), Step: anyStep().Draw(t, "step")}
		bound := int64(math.MaxInt64)
		if r.Step < 0 {
			bound = math.MinInt64
		}
		most := int64(math.MaxInt64)
		if n := bigSteps(r.First, bound, r.Step); n.IsInt64() && n.Int64() < math.MaxInt64 {
			most = n.Int64() + 1
		}
		r.Count = rapid.OneOf(
			rapid.Just(most), rapid.Int64Range(1, most), rapid.Int64Range(1, min(most, 10)),
		).Draw(t, "count")
		return r
	})
}

func TestRunAtIsExact(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		r := anyRun().Draw(t, "run")
		i := rapid.OneOf(rapid.Int64Range(0, r.Count-1), rapid.Just(r.Count-1)).Draw(t, "i")
		if got, want := r.At(i), bigAt(r.First, r.Step, i); want.Cmp(bigOf(got)) != 0 {
			t.Errorf("value %d of %v is %d, want %v", i, r, got, want)
		}
		if !r.fits() {
			t.Errorf("%v is said to leave int64", r)
		}
	})
}

func TestRunFitsUnlessAValueLeavesInt64(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		r := Run{anyInt64().Draw(t, "first"), anyStep().Draw(t, "step"), rapid.Int64Range(1, math.MaxInt64).Draw(t, "count")}
		if got, want := r.fits(), bigAt(r.First, r.Step, r.Count-1).IsInt64(); got != want {
			t.Errorf("%+v: fits %v", r, got)
		}
	})
}

func TestRunSplitLosesNothing(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		r := anyRun().Draw(t, "run")
		n := rapid.OneOf(rapid.Int64Range(0, r.Count), rapid.SampledFrom([]int64{0, r.Count})).Draw(t, "n")
		head, tail := r.split(n)
		if head.Count != n || tail.Count != r.Count-n {
			t.Fatalf("%v split at %d: %v and %v", r, n, head, tail)
		}
		if n > 0 && (head.First != r.First || head.Step != r.Step) {
			t.Errorf("head of %v at %d: %v", r, n, head)
		}
		if n < r.Count && (tail.First != r.At(n) || tail.Step != r.Step || tail.Last() != r.Last()) {
			t.Errorf("tail of %v at %d: %v", r, n, tail)
		}
		if n > 0 && n < r.Count && !head.joins(tail) {
			t.Errorf("%v and %v do not join", head, tail)
		}
	})
}

func TestRunBeyondLeavesWhatIsBeyond(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		r := anyRun().Draw(t, "run")
		last := rapid.OneOf(
			anyInt64(),
			rapid.Map(rapid.Int64Range(0, r.Count-1), r.At), // a value of the run
			rapid.Map(rapid.Int64Range(0, r.Count-1), func(i int64) int64 { return r.At(i) + 1 }),
			rapid.Map(rapid.Int64Range(0, r.Count-1), func(i int64) int64 { return r.At(i) - 1 }),
		).Draw(t, "last")
		beyond := func(v int64) bool { return r.Step > 0 && v > last || r.Step < 0 && v < last }
		_, got := r.split(r.upTo(last))
		skipped := r.Count - got.Count
		if skipped < 0 || got.Count < 0 || skipped != r.upTo(last) {
			t.Fatalf("%v beyond %d: %v", r, last, got)
		}
		if skipped > 0 && beyond(r.At(skipped-1)) {
			t.Errorf("%v beyond %d leaves out %d", r, last, r.At(skipped-1))
		}
		if got.Count > 0 && (got.First != r.At(skipped) || !beyond(got.First) || got.Last() != r.Last()) {
			t.Errorf("%v beyond %d: %v", r, last, got)
		}
	})
}

func TestRunBeyondCountsPastInt64(t *testing.T) {
	r := Run{First: math.MinInt64, Step: 1, Count: math.MaxInt64} // up to -2
	for last, want := range map[int64]int64{-3: 1, -2: 0, -1: 0, 0: 0, math.MaxInt64: 0} {
		if _, got := r.split(r.upTo(last)); got.Count != want {
			t.Errorf("%v beyond %d: %v", r, last, got)
		}
	}
}

func TestRunJoinsOnlyItsContinuation(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		r := anyRun().Draw(t, "run")
		next := rapid.OneOf(anyRun(), rapid.Custom(func(t *rapid.T) Run {
			// What follows in arithmetic that wraps around, be it valid or not.
			return Run{First: r.Last() + r.Step, Step: rapid.OneOf(rapid.Just(r.Step), anyStep()).Draw(t, "step"), Count: 1}
		})).Draw(t, "next")
		want := next.Step == r.Step && bigAt(r.Last(), r.Step, 1).Cmp(bigOf(next.First)) == 0
		if got := r.joins(next); got != want {
			t.Errorf("%v joins %v: %v", r, next, got)
		}
	})
	one, none := Run{First: 1, Step: 1, Count: 1}, Run{First: 2, Step: 1}
	if one.joins(none) || none.joins(one) || (Run{}).joins(Run{}) {
		t.Error("an empty run joins")
	}
}

func TestDistanceAndMagnitudeAreExact(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		a, b := anyInt64().Draw(t, "a"), anyInt64().Draw(t, "b")
		want := new(big.Int).Abs(new(big.Int).Sub(bigOf(a), bigOf(b)))
		if got := distance(a, b); new(big.Int).SetUint64(got).Cmp(want) != 0 {
			t.Errorf("distance of %d and %d is %d", a, b, got)
		}
		if got := magnitude(a); new(big.Int).SetUint64(got).Cmp(new(big.Int).Abs(bigOf(a))) != 0 {
			t.Errorf("magnitude of %d is %d", a, got)
		}
	})
}

func TestRunPrintsItsEnds(t *testing.T) {
	for _, c := range []struct {
		run  Run
		want string
	}{
		{Run{}, "empty"},
		{Run{First: 5, Step: 3}, "empty"},
		{Run{First: -1, Step: -2, Count: 3}, "-1..-5/-2 (3)"},
	} {
		if got := fmt.Sprint(c.run); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
