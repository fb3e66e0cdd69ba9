package board

import (
	"slices"

	"github.com/tallystick/tallystick/migrate"
)

// Spans is a set of slot indexes: rising spans with a gap between each two.
type Spans []migrate.Span

// Add returns s with x.
func (s Spans) Add(x migrate.Span) Spans {
	if x.Lo >= x.Hi {
		return s
	}
	from := 0
	for from < len(s) && s[from].Hi < x.Lo {
		from++
	}
	to := from
	for ; to < len(s) && s[to].Lo <= x.Hi; to++ {
		x.Lo, x.Hi = min(x.Lo, s[to].Lo), max(x.Hi, s[to].Hi)
	}
	return slices.Replace(slices.Clone(s), from, to, x)
}

// Covers reports whether all of x is in s.
func (s Spans) Covers(x migrate.Span) bool {
	if x.Lo >= x.Hi {
		return true
	}
	for _, y := range s {
		if y.Lo <= x.Lo && x.Hi <= y.Hi {
			return true
		}
	}
	return false
}

// Intersect returns what a and b share.
func Intersect(a, b migrate.Span) migrate.Span {
	lo := max(a.Lo, b.Lo)
	return migrate.Span{Lo: lo, Hi: max(lo, min(a.Hi, b.Hi))}
}

// FirstFree returns the first index of within, from its upper end or with
// oldest from its lower end, that is neither in finished nor taken.
func FirstFree(finished Spans, taken map[int64]bool, within migrate.Span, oldest bool) (int64, bool) {
	if oldest {
		return lowest(finished, taken, within)
	}
	return highest(finished, taken, within)
}

func highest(finished Spans, taken map[int64]bool, within migrate.Span) (int64, bool) {
	n := len(finished)
	for i := within.Hi - 1; i >= within.Lo; i-- {
		for n > 0 && finished[n-1].Lo > i {
			n--
		}
		if n > 0 && i < finished[n-1].Hi {
			i = finished[n-1].Lo // the loop goes on below it
			continue
		}
		if !taken[i] {
			return i, true
		}
	}
	return 0, false
}

func lowest(finished Spans, taken map[int64]bool, within migrate.Span) (int64, bool) {
	n := 0
	for i := within.Lo; i < within.Hi; i++ {
		for n < len(finished) && finished[n].Hi <= i {
			n++
		}
		if n < len(finished) && i >= finished[n].Lo {
			i = finished[n].Hi - 1
			continue
		}
		if !taken[i] {
			return i, true
		}
	}
	return 0, false
}

// Without returns the parts of x between the indexes in taken.
func Without(x migrate.Span, taken map[int64]bool) []migrate.Span {
	var at []int64
	for i := range taken {
		if x.Lo <= i && i < x.Hi {
			at = append(at, i)
		}
	}
	slices.Sort(at)
	var parts []migrate.Span
	for _, i := range at {
		parts = append(parts, migrate.Span{Lo: x.Lo, Hi: i})
		x.Lo = i + 1
	}
	return append(parts, x)
}
