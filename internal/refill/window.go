// Package refill decides when a cache of values is filled up again, and how
// far: early enough that nobody waits, late enough that little is fetched in
// vain. The client's cache of leases and the server's cache of blocks use it.
//
// It only decides. A [Window] measures consumption from the counts its owner
// feeds it, a [Policy] turns the rate into a [Level]; the owner fetches. There
// is no clock, lock or goroutine in here: a caller passes the time, and guards
// what it shares.
package refill

import "time"

// Span is how far back a [Window] remembers.
const Span = buckets * time.Second

const buckets = 60

// A Window measures the rate of consumption over the last [Span], in buckets
// of one second. The zero Window is empty. Not safe for concurrent use.
type Window struct {
	origin time.Time // of the first Add; bucket k holds the second [origin+k, origin+k+1)
	last   time.Time // of the newest Add
	counts [buckets]float32
}

// Add records that n values were consumed since the Add before it, evenly.
// The first Add records them at its own instant. A time before that of the
// last Add counts as that.
func (w *Window) Add(now time.Time, n int64) {
	if w.origin.IsZero() {
		w.origin, w.last = now, now
	}
	if now.Before(w.last) {
		now = w.last
	}
	from := w.last
	w.forget(now)
	w.last = now
	elapsed := now.Sub(from)
	if elapsed == 0 {
		w.counts[w.second(now)%buckets] += float32(n)
		return
	}
	perSecond := float64(n) / elapsed.Seconds()
	// What was consumed before the oldest bucket is forgotten already; its place
	// in the ring is that of the newest.
	if oldest := w.begin(w.second(now) - buckets + 1); from.Before(oldest) {
		from = oldest
	}
	for from.Before(now) {
		k := w.second(from)
		end := w.begin(k + 1)
		if end.After(now) {
			end = now
		}
		w.counts[k%buckets] += float32(perSecond * end.Sub(from).Seconds())
		from = end
	}
}

// Rate returns values a second: the larger of the mean over the last [Span]
// and the mean over the last second or two. So it follows a burst at once,
// which a mean over the whole span would see a minute late, and forgets it
// with the span. Consumption is known up to the last Add only.
func (w *Window) Rate(now time.Time) float64 {
	return max(w.Mean(now), w.mean(now, 2))
}

// Mean returns the mean over the last [Span], or since the first Add if that
// is less, but at least a second.
func (w *Window) Mean(now time.Time) float64 { return w.mean(now, buckets) }

// Total returns how many values were consumed in the last [Span].
func (w *Window) Total(now time.Time) int64 {
	total, _ := w.sum(now, buckets)
	return int64(total + 0.5)
}

// mean returns the mean of the newest n buckets, the current one included.
func (w *Window) mean(now time.Time, n int64) float64 {
	total, covered := w.sum(now, n)
	return total / max(1, covered.Seconds())
}

// sum returns what the newest n buckets hold and how much time they cover.
func (w *Window) sum(now time.Time, n int64) (total float64, covered time.Duration) {
	if w.origin.IsZero() {
		return 0, 0
	}
	newest := w.second(now)
	oldest := max(0, newest-n+1)
	// Buckets older than a full ring before the last Add hold nothing newer.
	for k := max(oldest, w.second(w.last)-buckets+1); k <= min(newest, w.second(w.last)); k++ {
		total += float64(w.counts[k%buckets])
	}
	return total, now.Sub(w.begin(oldest))
}

// forget empties the buckets that begin after the last Add, up to now's.
func (w *Window) forget(now time.Time) {
	newest, known := w.second(now), w.second(w.last)
	for k := max(known+1, newest-buckets+1); k <= newest; k++ {
		w.counts[k%buckets] = 0
	}
}

// second returns the number of the bucket that t falls into.
func (w *Window) second(t time.Time) int64 { return int64(t.Sub(w.origin) / time.Second) }

// begin returns when bucket k begins.
func (w *Window) begin(k int64) time.Time { return w.origin.Add(time.Duration(k) * time.Second) }
