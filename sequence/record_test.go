package sequence

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// anyRange draws a definition's arithmetic: any that is valid, with tiny ranges
// and ranges at the edges of int64 often.
func anyRange() *rapid.Generator[Definition] {
	return rapid.Custom(func(t *rapid.T) Definition {
		d := Definition{Name: "s", Increment: anyStep().Draw(t, "increment"), Cycle: rapid.Bool().Draw(t, "cycle")}
		d.Min = anyInt64().Filter(func(v int64) bool { return v < math.MaxInt64 }).Draw(t, "min")
		tiny := min(uint64(30), distance(d.Min, math.MaxInt64))
		d.Max = rapid.OneOf(
			rapid.Int64Range(d.Min+1, math.MaxInt64),
			rapid.Int64Range(d.Min+1, d.Min+int64(tiny)),
			rapid.Just(int64(math.MaxInt64)),
		).Draw(t, "max")
		d.Start = rapid.OneOf(rapid.Int64Range(d.Min, d.Max), rapid.SampledFrom([]int64{d.Min, d.Max})).Draw(t, "start")
		if d.Max-d.Min > 0 && d.Max-d.Min < 1000 { // else a step leaves nearly every tiny range
			d.Increment = rapid.OneOf(rapid.Just(d.Increment), rapid.Int64Range(1, 9), rapid.Int64Range(-9, -1)).Draw(t, "small increment")
		}
		return d
	})
}

// anyRecord draws a record at any position of its range, or exhausted.
func anyRecord() *rapid.Generator[Record] {
	return rapid.Custom(func(t *rapid.T) Record {
		r := newRecord(anyRange().Draw(t, "definition"), "0")
		d := r.Definition
		r.Epoch = rapid.Uint64Range(1, 5).Draw(t, "epoch")
		r.Next = rapid.OneOf(rapid.Just(d.Start), rapid.Int64Range(d.Min, d.Max), rapid.Just(d.bound())).Draw(t, "next")
		r.Exhausted = rapid.IntRange(0, 3).Draw(t, "exhausted") == 0
		return r
	})
}

// oracle is nextval as PostgreSQL's documentation has it, in numbers without
// bounds. It knows nothing of blocks.
type oracle struct {
	d     Definition
	value *big.Int // the last one; nil: none yet
	epoch uint64
}

// next returns the next value, and false when there is none.
func (o *oracle) next() (int64, bool) {
	if o.value == nil {
		o.value = bigOf(o.d.Start)
		return o.d.Start, true
	}
	v := new(big.Int).Add(o.value, bigOf(o.d.Increment))
	switch {
	case v.Cmp(bigOf(o.d.Min)) >= 0 && v.Cmp(bigOf(o.d.Max)) <= 0:
	case !o.d.Cycle:
		return 0, false
	case o.d.Increment > 0:
		v, o.epoch = bigOf(o.d.Min), o.epoch+1
	default:
		v, o.epoch = bigOf(o.d.Max), o.epoch+1
	}
	o.value = v
	return v.Int64(), true
}

// remaining counts the values of the lap from next on.
func remaining(r Record) *big.Int {
	next := r.Next
	if r.Exhausted {
		if !r.Definition.Cycle {
			return new(big.Int)
		}
		next = r.Definition.first()
	}
	n := bigSteps(next, r.Definition.bound(), r.Definition.Increment)
	return n.Add(n, big.NewInt(1))
}

func TestRemainingIsExact(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		r := anyRecord().Draw(t, "record")
		want := remaining(r)
		if most := new(big.Int).SetUint64(math.MaxUint64); want.Cmp(most) > 0 {
			want = most // 2^64 does not fit
		}
		if got := r.Remaining(); new(big.Int).SetUint64(got).Cmp(want) != 0 {
			t.Errorf("%d remain of %+v, want %v", got, r, want)
		}
		v, ok := r.Upcoming()
		if ok != (want.Sign() > 0) {
			t.Errorf("upcoming of %+v: %v", r, ok)
		}
		if block, _, err := r.Take(1, "1"); ok && (err != nil || block.First != v) {
			t.Errorf("upcoming %d, taken %v, %v", v, block, err)
		}
	})
}

// checkTake takes n values of r and compares with exact arithmetic.
func checkTake(t interface{ Fatalf(string, ...any) }, r Record, n int64) {
	left := remaining(r)
	block, after, err := r.Take(n, "1")
	if left.Sign() == 0 {
		if !errors.Is(err, ErrExhausted) || block.Count != 0 {
			t.Fatalf("took %v, %v of %+v, which is exhausted", block, err, r)
		}
		return
	}
	first, epoch := r.Next, r.Epoch
	if r.Exhausted {
		first, epoch = r.Definition.first(), r.Epoch+1
	}
	want := Block{Run: Run{First: first, Step: r.Definition.Increment, Count: n}, Epoch: epoch, Version: r.Version}
	if left.Cmp(bigOf(n)) < 0 {
		want.Count = left.Int64()
	}
	if err != nil || block != want {
		t.Fatalf("took %+v, %v of %+v, want %+v", block, err, r, want)
	}
	exhausted := left.Cmp(bigOf(n)) <= 0
	next := bigAt(first, r.Definition.Increment, n)
	if exhausted {
		next = bigAt(first, r.Definition.Increment, want.Count-1)
	}
	if after.Exhausted != exhausted || bigOf(after.Next).Cmp(next) != 0 || after.Epoch != epoch || after.Nonce != "1" || after.Version != r.Version {
		t.Fatalf("took %d of %+v: left %+v, want next %v, exhausted %v", n, r, after, next, exhausted)
	}
}

func TestTakeIsExact(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		r := anyRecord().Draw(t, "record")
		n := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, math.MaxInt64), rapid.Just(int64(math.MaxInt64)), nearRemaining(r)).Draw(t, "n")
		checkTake(t, r, n)
	})
}

// nearRemaining draws a count close to what is left, where one off matters.
func nearRemaining(r Record) *rapid.Generator[int64] {
	left := remaining(r)
	if !left.IsInt64() || left.Sign() == 0 || left.Int64() == math.MaxInt64 {
		return rapid.Just(int64(1))
	}
	return rapid.Int64Range(max(1, left.Int64()-1), left.Int64()+1)
}

// FuzzTake is [TestTakeIsExact] for a fuzzer.
func FuzzTake(f *testing.F) {
	f.Add(int64(1), int64(1), int64(1), int64(math.MaxInt64), int64(1000), false, false)
	f.Add(int64(math.MinInt64), int64(math.MinInt64), int64(math.MaxInt64), int64(1), int64(math.MaxInt64), false, true)
	f.Add(int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64), int64(math.MinInt64), int64(2), true, true)
	f.Add(int64(3), int64(-2), int64(5), int64(2), int64(4), false, true)
	f.Fuzz(func(t *testing.T, next, low, high, increment, n int64, exhausted, cycle bool) {
		if low >= high || next < low || next > high || increment == 0 || n < 1 {
			return
		}
		r := newRecord(Definition{Name: "s", Increment: increment, Min: low, Max: high, Start: next, Cycle: cycle}, "0")
		r.Exhausted = exhausted
		checkTake(t, r, n)
	})
}

// TestBlocksAreNextval: blocks of any sizes laid end to end are what nextval
// returns one by one, laps and epochs included, until both say it is over.
func TestBlocksAreNextval(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		r := newRecord(anyRange().Draw(t, "definition"), "0")
		o := oracle{d: r.Definition, epoch: 1}
		for taken := 0; taken < 100; {
			n := rapid.Int64Range(1, 40).Draw(t, "n")
			block, after, err := r.Take(n, "1")
			if err != nil {
				if v, ok := o.next(); ok {
					t.Fatalf("%v where nextval returns %d", err, v)
				}
				return
			}
			for i := range block.Count {
				if v, ok := o.next(); !ok || block.At(i) != v || block.Epoch != o.epoch {
					t.Fatalf("value %d of block %v in epoch %d, want %d, %v in epoch %d", i, block, block.Epoch, v, ok, o.epoch)
				}
			}
			taken += int(block.Count)
			r = after
		}
	})
}

// TestDescendingMirrorsAscending: a descending sequence is the negative of the
// ascending one whose definition is its negative.
func TestDescendingMirrorsAscending(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		up := anyRange().Filter(func(d Definition) bool {
			return d.Min > math.MinInt64 && d.Increment > math.MinInt64
		}).Draw(t, "definition")
		down := up
		down.Increment, down.Start, down.Min, down.Max = -up.Increment, -up.Start, -up.Max, -up.Min
		a, b := newRecord(up, "0"), newRecord(down, "0")
		for range 20 {
			n := rapid.Int64Range(1, 40).Draw(t, "n")
			if a.Remaining() != b.Remaining() {
				t.Fatalf("%d remain of %+v, %d of %+v", a.Remaining(), a, b.Remaining(), b)
			}
			blockA, afterA, errA := a.Take(n, "1")
			blockB, afterB, errB := b.Take(n, "1")
			if (errA == nil) != (errB == nil) || blockA.Count != blockB.Count || blockA.First != -blockB.First || blockA.Step != -blockB.Step ||
				afterA.Next != -afterB.Next || afterA.Exhausted != afterB.Exhausted || afterA.Epoch != afterB.Epoch {
				t.Fatalf("up %+v, %+v, %v; down %+v, %+v, %v", blockA, afterA, errA, blockB, afterB, errB)
			}
			a, b = afterA, afterB
		}
	})
}

// TestAdvanceIsTake: where an Advance made from one record applies to another,
// it does what Take would do there, keeps beyond the floor and leaves a value.
func TestAdvanceIsTake(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		r := anyRecord().Draw(t, "record")
		d := r.Definition
		n := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, math.MaxInt64), nearRemaining(r)).Draw(t, "n")
		var floor *int64
		if rapid.Bool().Draw(t, "with floor") {
			v := rapid.Int64Range(d.Min, d.Max).Draw(t, "floor")
			if !r.ahead(v) {
				floor = &v
			}
		}
		a, ok := r.advance(n, floor, "1")
		if !ok {
			fits := new(big.Int).Mul(bigOf(n), bigOf(d.Increment)).IsInt64() && n*d.Increment != math.MinInt64
			if !r.Exhausted && remaining(r).Cmp(bigOf(n)) > 0 && fits {
				t.Fatalf("no advance by %d of %+v", n, r)
			}
			return
		}
		if !a.Applies(r) {
			t.Fatalf("%+v does not apply to %+v, of which it was made", a, r)
		}

		now := r // as another server may have left it
		now.Next = rapid.OneOf(
			rapid.Int64Range(d.Min, d.Max), rapid.Just(r.Next), rapid.SampledFrom([]int64{a.Low, a.High, d.Min, d.Max}),
			rapid.Map(rapid.Int64Range(0, int64(min(d.stepsFrom(r.Next), 1000))), func(i int64) int64 { return r.Next + i*d.Increment }),
		).Draw(t, "next by then")
		if floor != nil && rapid.Bool().Draw(t, "close to the floor") { // by a give-back
			now.Next = *floor + rapid.SampledFrom([]int64{0, d.Increment}).Draw(t, "steps beyond the floor")
		}
		if now.Next < d.Min || now.Next > d.Max {
			return
		}
		now.Exhausted = rapid.IntRange(0, 9).Draw(t, "exhausted by then") == 0
		fresh := floor == nil || !now.ahead(*floor)
		if want := !now.Exhausted && remaining(now).Cmp(bigOf(n)) > 0 && fresh; a.Applies(now) != want {
			t.Fatalf("%+v applies to %+v: %v", a, now, !want)
		} else if !want {
			return
		}
		wantBlock, want, err := now.Take(n, "1")
		after := a.To(now)
		if got := a.block(after); err != nil || got != wantBlock || after.Next != want.Next || after.Exhausted != want.Exhausted || after.Nonce != "1" {
			t.Fatalf("%+v took %+v of %+v and left %+v; Take: %+v, %+v", a, got, now, after, wantBlock, want)
		}
		for _, v := range []int64{wantBlock.First, wantBlock.Last()} {
			if floor != nil && (v == *floor || (v > *floor) != (d.Increment > 0)) {
				t.Errorf("took %v with floor %d", wantBlock, *floor)
			}
		}
	})
}

func TestAdvanceAppliesOnlyToWhatItWasMadeFor(t *testing.T) {
	r := newRecord(Definition{Name: "s", Increment: 1, Min: 1, Max: 1000, Start: 1}, "0")
	a, ok := r.advance(10, nil, "1")
	if !ok || !a.Applies(r) {
		t.Fatalf("%+v does not apply", a)
	}
	for name, change := range map[string]func(*Record){
		"epoch":     func(r *Record) { r.Epoch++ },
		"version":   func(r *Record) { r.Version++ },
		"deleted":   func(r *Record) { r.State = StateDeleted },
		"exhausted": func(r *Record) { r.Exhausted = true },
		"no room":   func(r *Record) { r.Next = 991 },
		"below":     func(r *Record) { r.Next = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			changed := r
			change(&changed)
			if a.Applies(changed) {
				t.Errorf("applies to %+v", changed)
			}
		})
	}
}

func TestWrappedBeginsTheNextLapOfACycle(t *testing.T) {
	up := Definition{Name: "s", Increment: 2, Min: -2, Max: 5, Start: 3, Cycle: true}
	down := up
	down.Increment = -2
	once := up
	once.Cycle = false
	for name, c := range map[string]struct {
		r, want Record
	}{
		"up: at min":           {Record{Definition: up, Epoch: 1, Next: 5, Exhausted: true}, Record{Definition: up, Epoch: 2, Next: -2}},
		"down: at max":         {Record{Definition: down, Epoch: 7, Next: -1, Exhausted: true}, Record{Definition: down, Epoch: 8, Next: 5}},
		"not at the end: not":  {Record{Definition: up, Epoch: 1, Next: 5}, Record{Definition: up, Epoch: 1, Next: 5}},
		"without a cycle: not": {Record{Definition: once, Epoch: 1, Next: 5, Exhausted: true}, Record{Definition: once, Epoch: 1, Next: 5, Exhausted: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.r.wrapped(); got.Next != c.want.Next || got.Epoch != c.want.Epoch || got.Exhausted != c.want.Exhausted {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
