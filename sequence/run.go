package sequence

import "fmt"

// A Run is an arithmetic progression: First, First+Step, ..., Count values in
// all. No value of a valid run leaves int64. The zero Run is empty.
type Run struct {
	First int64
	Step  int64 // not 0 unless Count is 0
	Count int64 // not negative
}

// At returns the i-th value, 0 <= i < Count.
func (r Run) At(i int64) int64 { return r.First + i*r.Step }

// Last returns the last value of a run that is not empty.
func (r Run) Last() int64 { return r.At(r.Count - 1) }

// split returns the first n values and the rest, 0 <= n <= Count.
func (r Run) split(n int64) (head, tail Run) {
	head, tail = r, r
	head.Count = n
	tail.Count -= n
	if tail.Count > 0 { // First+n*Step may lie outside int64 otherwise
		tail.First = r.At(n)
	}
	return head, tail
}

// joins reports whether next continues r, so that both are one run.
func (r Run) joins(next Run) bool {
	return r.Count > 0 && next.Count > 0 && r.Step == next.Step &&
		follows(r.Last(), r.Step, next.First)
}

// follows reports whether b == a+step, without overflow.
func follows(a, step, b int64) bool {
	return b-a == step && (step > 0) == (b > a)
}

// upTo counts the values of r that do not lie beyond last.
func (r Run) upTo(last int64) int64 {
	switch {
	case r.Count == 0:
		return 0
	case r.Step > 0 && last < r.First, r.Step < 0 && last > r.First:
		return 0
	}
	return min(r.Count, satInc(distance(r.First, last)/magnitude(r.Step)))
}

// fits reports whether every value of r lies within int64.
func (r Run) fits() bool {
	d := Definition{Increment: r.Step, Min: -1 << 63, Max: 1<<63 - 1}
	return uint64(r.Count-1) <= d.stepsFrom(r.First)
}

// satInc returns d+1 as an int64, or the largest int64.
func satInc(d uint64) int64 {
	const top = 1<<63 - 1
	if d >= top {
		return top
	}
	return int64(d) + 1
}

// String returns the run as "first..last/step (count)".
func (r Run) String() string {
	if r.Count == 0 {
		return "empty"
	}
	return fmt.Sprintf("%d..%d/%d (%d)", r.First, r.Last(), r.Step, r.Count)
}

// distance returns |a-b|, which may exceed int64.
func distance(a, b int64) uint64 {
	if a > b {
		a, b = b, a
	}
	return uint64(b) - uint64(a)
}

// magnitude returns |v|, exact for the smallest int64 too.
func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}
