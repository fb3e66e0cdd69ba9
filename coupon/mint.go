package coupon

import (
	"errors"

	"github.com/tallystick/tallystick/shard"
)

// The parts of an id, from the top: 41 bits of ms since the epoch, 8 of the
// worker number, 4 of a sequence, 10 of the bucket. They are frozen.
const (
	workerBits   = 8
	sequenceBits = 4
	bucketBits   = 10
	timeBits     = 63 - workerBits - sequenceBits - bucketBits
)

// WorkerNumbers is how many processes can make ids at the same time.
const WorkerNumbers = 1 << workerBits

// idEpoch is 2024-01-01 UTC in ms since 1970; lastMs is in September 2093.
const (
	idEpoch = 1_704_067_200_000
	lastMs  = idEpoch + 1<<timeBits - 1
)

// ErrNoIDs tells that no id can be made now, as the process has no worker number,
// or had one and could not renew its lease. Nothing was done; ask again. Callers of
// a [Service] are told [ErrShardUnavailable].
var ErrNoIDs = errors.New("coupon: no id can be made now")

// A generator makes the ids of one worker number, in the stretch of time that a
// lease gives it. It is not safe for concurrent use.
//
// It makes no id twice, as each bucket only goes up: to the next of the ms's
// sequence, or to a later ms. No other generator makes the same, as stretches of
// one number never overlap, see [Workers]. The clock is not needed for either:
// whatever it says, only ms of the stretch are used.
type generator struct {
	worker uint8
	now    int64 // latest ms seen, or the first one allowed
	used   int64 // latest ms of an id, or the last one before those allowed
	high   int64 // last ms allowed: the lease's high-water
	taken  [shard.Buckets]taken
}

// taken says of a bucket how many ids it has of the latest ms it used.
type taken struct {
	ms int64
	n  uint16
}

// newGenerator returns a generator for the ms after low, up to high.
func newGenerator(worker uint8, low, high int64) *generator {
	low = max(low, idEpoch)
	return &generator{worker: worker, now: low + 1, used: low, high: min(high, lastMs)}
}

// mint returns the bucket's next id: of ms now, or of the latest one seen if that
// is later, or of the first one after it that the bucket has not used up. It
// reports false rather than going beyond the high-water.
func (g *generator) mint(b shard.Bucket, now int64) (ID, bool) {
	if now > g.high {
		return 0, false
	}
	g.now = max(g.now, now)
	t := g.taken[b].next(g.now)
	if t.ms > g.high {
		return 0, false
	}
	g.taken[b] = t
	g.used = max(g.used, t.ms)
	return makeID(t.ms, g.worker, t.n-1, b), true
}

// next returns t with one more id, at ms now or later.
func (t taken) next(now int64) taken {
	switch {
	case t.ms < now:
		return taken{now, 1}
	case t.n < 1<<sequenceBits:
		return taken{t.ms, t.n + 1}
	}
	return taken{t.ms + 1, 1}
}

func makeID(ms int64, worker uint8, sequence uint16, b shard.Bucket) ID {
	id := ms - idEpoch
	id = id<<workerBits | int64(worker)
	id = id<<sequenceBits | int64(sequence)
	return ID(id<<bucketBits | int64(b))
}
