package refill

import "time"

// A Policy bounds a cache and says how much consumption it keeps ahead.
type Policy struct {
	Buffer       time.Duration // consumption to have in stock when a refill starts
	Periods      float64       // how many buffers a full cache holds
	Min, Max     int64         // bounds of what a full cache holds, 1 <= Min <= Max
	MinThreshold int64         // refill at the latest below this many; 0: a fifth of a full cache
}

// A Level is how full a cache should be at a given rate.
type Level struct {
	Capacity  int64 // values a full cache holds
	Threshold int64 // refill when fewer are left; at most 80 % of Capacity
}

// Level returns the level for a rate in values a second:
//
//	capacity  = rate x buffer x periods, within [Min, Max]
//	threshold = max(min threshold, rate x buffer), at most 80 % of capacity
//
// An idle cache (rate 0) is not filled ahead of its least threshold.
func (p Policy) Level(rate float64) Level {
	ahead := rate * p.Buffer.Seconds()
	capacity := clamp(ahead*p.Periods, p.Min, p.Max)
	least := p.MinThreshold
	if least == 0 {
		least = capacity / 5
	}
	most := capacity/5*4 + capacity%5*4/5
	return Level{Capacity: capacity, Threshold: min(max(least, clamp(ahead, 0, most)), most)}
}

// Due reports whether a cache with remaining values is to be filled up now.
func (l Level) Due(remaining int64) bool { return remaining < l.Threshold || remaining == 0 }

// NextLook returns how few values must be left for the owner to look at the
// rate again: at the threshold, or after a quarter of the capacity, so that a
// burst is seen well before it has emptied a cache sized for a trickle.
func (l Level) NextLook(remaining int64) int64 {
	return max(0, l.Threshold-1, remaining-max(1, l.Capacity/4))
}

// clamp returns v within [low, high], safe for values beyond int64.
func clamp(v float64, low, high int64) int64 {
	if v >= float64(high) {
		return high
	}
	return max(low, int64(v))
}
