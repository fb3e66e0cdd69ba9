package sequence

import "math"

// A State says whether values may be taken from a sequence.
type State string

// The states.
const (
	StateOpen    State = "open"
	StateDeleted State = "deleted" // a tombstone: it keeps the counter, so that re-creation continues beyond it
)

// A Record is a sequence as the store holds it: its definition and how far it
// has been taken. Records are values; the functions that move one return
// another.
type Record struct {
	Definition Definition
	Epoch      uint64 // grows at each wrap, re-creation and restart that reuses values; 1 at creation
	Version    uint32 // of the definition; grows at each alter, restart, delete and re-creation; 1 at creation
	State      State

	// Next is the first value no block contains. When Exhausted, there is
	// none and Next is the last value that one contains; a sequence that
	// cycles wraps with the next block.
	Next      int64
	Exhausted bool

	GiveBacks uint64 // how often Next was moved back by a server giving its tail back
	Nonce     string // fresh in every write: tells a writer whether the last write was its own
}

// A Block is the values a server took from the store in one write.
type Block struct {
	Run
	Epoch   uint64
	Version uint32
}

// newRecord returns the record of a sequence just created.
func newRecord(d Definition, nonce string) Record {
	return Record{Definition: d, Epoch: 1, Version: 1, State: StateOpen, Next: d.Start, Nonce: nonce}
}

// first returns the value a lap begins with after a wrap.
func (d Definition) first() int64 {
	if d.Descending() {
		return d.Max
	}
	return d.Min
}

// bound returns the last value the direction allows.
func (d Definition) bound() int64 {
	if d.Descending() {
		return d.Min
	}
	return d.Max
}

// stepsFrom counts the values after v, v itself not counted. Unlike a count
// of values it always fits a uint64.
func (d Definition) stepsFrom(v int64) uint64 {
	return distance(v, d.bound()) / magnitude(d.Increment)
}

// skip returns the value n steps after v, if there is one.
func (d Definition) skip(v int64, n uint64) (int64, bool) {
	if n > d.stepsFrom(v) {
		return v, false
	}
	return int64(uint64(v) + n*uint64(d.Increment)), true
}

// wrapped returns r at the beginning of its next lap, if it is at the end of
// one and cycles.
func (r Record) wrapped() Record {
	if r.Exhausted && r.Definition.Cycle {
		r.Next, r.Exhausted = r.Definition.first(), false
		r.Epoch++
	}
	return r
}

// Remaining counts the values nobody has taken yet: of this lap, or of the
// next one when this is at its end. 2^64 values count as 2^64-1.
func (r Record) Remaining() uint64 {
	r = r.wrapped()
	if r.Exhausted {
		return 0
	}
	steps := r.Definition.stepsFrom(r.Next)
	if steps == math.MaxUint64 {
		return steps
	}
	return steps + 1
}

// Upcoming returns the next value the store would hand out, and false when
// there is none.
func (r Record) Upcoming() (int64, bool) {
	r = r.wrapped()
	return r.Next, !r.Exhausted
}

// ahead reports whether v lies where no block has been taken yet.
func (r Record) ahead(v int64) bool {
	switch {
	case v == r.Next:
		return !r.Exhausted
	case r.Definition.Descending():
		return v < r.Next
	}
	return v > r.Next
}

// issued reports whether r may have handed v out in its epoch.
func (r Record) issued(v int64) bool { return !r.ahead(v) }

// Take returns a block of n values, or of as many as the lap has left, and
// the record after it. It fails with [ErrExhausted] when there is none.
func (r Record) Take(n int64, nonce string) (Block, Record, error) {
	r = r.wrapped()
	if r.Exhausted {
		return Block{}, r, exhausted(r.Definition)
	}
	steps := r.Definition.stepsFrom(r.Next)
	run := Run{First: r.Next, Step: r.Definition.Increment, Count: n}
	if uint64(n-1) >= steps { // the last block of the lap
		run.Count = int64(steps) + 1
		r.Next, r.Exhausted = run.Last(), true
	} else {
		r.Next = run.Last() + run.Step
	}
	r.Nonce = nonce
	return Block{Run: run, Epoch: r.Epoch, Version: r.Version}, r, nil
}

// An Advance moves a record's counter by one whole block, wherever the counter
// stands by then: unlike [Store.Swap] it does not fail because another server
// took a block in between. It is refused unless epoch, version and state still
// hold and the counter lies within [Low, High].
type Advance struct {
	Name    string
	Epoch   uint64
	Version uint32
	Delta   int64 // count x increment
	Low     int64
	High    int64
	Nonce   string
}

// Applies reports whether a may move r.
func (a Advance) Applies(r Record) bool {
	return r.State == StateOpen && !r.Exhausted && r.Epoch == a.Epoch && r.Version == a.Version &&
		a.Low <= r.Next && r.Next <= a.High
}

// To returns r moved by a.
func (a Advance) To(r Record) Record {
	r.Next += a.Delta
	r.Nonce = a.Nonce
	return r
}

// advance returns the Advance that takes n values of r beyond floor (nil:
// wherever the counter stands), and false where only [Record.Take] can: at the
// end of a lap, and where the move does not fit int64. The bounds leave at
// least one value after the block, so that Next stays a value.
func (r Record) advance(n int64, floor *int64, nonce string) (Advance, bool) {
	d := r.Definition
	if r.Exhausted || n < 1 || uint64(n) > d.stepsFrom(r.Next) || magnitude(d.Increment) > math.MaxInt64/uint64(n) {
		return Advance{}, false
	}
	a := Advance{Name: d.Name, Epoch: r.Epoch, Version: r.Version, Delta: n * d.Increment, Low: d.Min, High: d.Max, Nonce: nonce}
	if d.Descending() {
		a.Low = d.Min - a.Delta
		if floor != nil && *floor <= a.High {
			a.High = *floor - 1
		}
	} else {
		a.High = d.Max - a.Delta
		if floor != nil && *floor >= a.Low {
			a.Low = *floor + 1
		}
	}
	return a, a.Low <= a.High
}

// block returns the block that a took, given the record it left.
func (a Advance) block(after Record) Block {
	step := after.Definition.Increment
	return Block{
		Run:   Run{First: after.Next - a.Delta, Step: step, Count: a.Delta / step},
		Epoch: after.Epoch, Version: after.Version,
	}
}
