package coupon

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tallystick/tallystick/internal/refill"
	"github.com/tallystick/tallystick/shard"
)

// How much of a slice a process keeps ahead. What it keeps and does not use,
// because it ends, is found again by the scan at the slice's end.
var poolPolicy = refill.Policy{Buffer: 2 * time.Second, Periods: 2, Min: 8, Max: 500}

// Bounds of waiting for a slice.
const (
	poolPatience = 500 * time.Millisecond // a claim's, for the user's own slice
	poolGlance   = 100 * time.Millisecond // and for each of the others: the next may have some
	poolRetry    = 100 * time.Millisecond // after a slice had nothing, or failed
	fillTimeout  = 2 * time.Second
	maxSlices    = 32 * 1024
)

// errSliceEmpty tells that a slice has no coupon any more and will not get one.
var errSliceEmpty = errors.New("coupon: slice is empty")

// A pool gives claims coupons to try. The stock itself is the truth: a coupon is
// taken by changing its row, so a coupon given out twice costs a second try and
// nothing else. Safe for concurrent use.
//
// A slice is filled from a cursor that all processes share, and, once that is at
// its end, by a scan for what others took and never used. A slice that a scan
// found empty after generation was closed stays empty, because no coupon ever
// becomes available again.
//
// From a shard that did not answer last no coupon is given that was kept, because
// a claim of one shard with a coupon of another is held up while that is away: it
// has to be filled first, and others are asked before it.
type pool struct {
	store *healthyStore
	spawn func(func(context.Context)) // runs a fill, which ends by itself

	mu     sync.Mutex
	slices map[sliceKey]*slice
}

type sliceKey struct {
	campaign int64
	shard    shard.Shard
}

// A slice is what a process has of a campaign's stock on one shard.
type slice struct {
	mu     sync.Mutex
	refs   []Ref
	used   refill.Window
	end    bool // the cursor is: what there is has to be looked for
	empty  bool
	flight chan struct{} // closed when the fill under way ends; nil: none is
	why    error         // the last fill brought nothing because; nil: it did
	retry  time.Time     // when to try again
}

// take returns a coupon of a slice to try. It fails with [errSliceEmpty],
// [ErrPoolRefilling] or because the shard is unavailable.
func (p *pool) take(ctx context.Context, c Campaign, s shard.Shard) (Ref, error) {
	return p.takeWithin(ctx, c, s, poolPatience)
}

func (p *pool) takeWithin(ctx context.Context, c Campaign, s shard.Shard, limit time.Duration) (Ref, error) {
	sl := p.slice(sliceKey{c.ID, s})
	patience := time.NewTimer(limit)
	defer patience.Stop()
	for {
		ref, landed, err := p.next(sl, c, s)
		if landed == nil {
			return ref, err
		}
		select {
		case <-landed:
		case <-patience.C:
			return Ref{}, ErrPoolRefilling
		case <-ctx.Done():
			return Ref{}, context.Cause(ctx)
		}
	}
}

// next returns a coupon, why there is none, or what to wait for. It fills the
// slice up when that is due.
func (p *pool) next(sl *slice, c Campaign, s shard.Shard) (ref Ref, landed <-chan struct{}, err error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	now := time.Now()
	if n := len(sl.refs); n > 0 && !p.store.isSilent(s) {
		ref, sl.refs = sl.refs[0], sl.refs[1:]
		sl.used.Add(now, 1)
		if !sl.end && poolPolicy.Level(sl.used.Rate(now)).Due(int64(n-1)) && now.After(sl.retry) {
			p.launch(sl, c, s)
		}
		return ref, nil, nil
	}
	if sl.empty {
		return ref, nil, errSliceEmpty
	}
	if now.Before(sl.retry) && sl.flight == nil {
		return ref, nil, sl.why
	}
	p.launch(sl, c, s)
	return ref, sl.flight, nil
}

// put gives back a coupon that was not tried after all.
func (p *pool) put(campaign int64, r Ref) {
	sl := p.slice(sliceKey{campaign, r.ID.Shard()})
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.refs = append(sl.refs, r)
}

// takeElsewhere returns a coupon of any slice but home's. [ErrPoolExhausted] is
// exact: every slice was seen empty, and generation was closed before.
func (p *pool) takeElsewhere(ctx context.Context, c Campaign, home shard.Shard) (Ref, error) {
	why := error(ErrPoolExhausted)
	for _, s := range p.elsewhere(home) {
		ref, err := p.takeWithin(ctx, c, s, poolGlance)
		if err == nil {
			return ref, nil
		}
		if !errors.Is(err, errSliceEmpty) {
			why = err // the slice may have some
		}
		if ctx.Err() != nil {
			return ref, context.Cause(ctx)
		}
	}
	return Ref{}, why
}

// elsewhere returns all shards but home's, in random order, those last that did not
// answer last.
func (p *pool) elsewhere(home shard.Shard) (order []shard.Shard) {
	var silent []shard.Shard
	for _, i := range rand.Perm(shard.Count) {
		switch s := shard.Shard(i); {
		case s == home:
		case p.store.isSilent(s):
			silent = append(silent, s)
		default:
			order = append(order, s)
		}
	}
	return append(order, silent...)
}

// launch starts a fill unless one is under way. The caller holds sl.mu.
func (p *pool) launch(sl *slice, c Campaign, s shard.Shard) {
	if sl.flight != nil || sl.empty {
		return
	}
	landed := make(chan struct{})
	sl.flight = landed
	want := int(poolPolicy.Level(sl.used.Rate(time.Now())).Capacity) - len(sl.refs)
	p.spawn(func(ctx context.Context) {
		refs, end, err := p.fill(ctx, c, s, max(1, want))
		sl.land(refs, end, err)
		close(landed)
	})
}

// land takes what a fill brought. A scan finds what is at hand as well.
func (sl *slice) land(refs []Ref, end bool, err error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.flight, sl.why, sl.end = nil, err, end
	had := make(map[ID]bool, len(sl.refs))
	for _, r := range sl.refs {
		had[r.ID] = true
	}
	sl.refs = append(sl.refs, slices.DeleteFunc(refs, func(r Ref) bool { return had[r.ID] })...)
	sl.empty = errors.Is(err, errSliceEmpty)
	if err != nil {
		sl.retry = time.Now().Add(poolRetry)
	}
}

// fill returns up to n coupons of a slice, from the cursor or, when that is at
// its end, from what others left.
func (p *pool) fill(ctx context.Context, c Campaign, s shard.Shard, n int) (refs []Ref, end bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	for {
		err := p.store.Write(ctx, s, func(tx Tx) (err error) {
			refs, end, err = tx.Advance(c.ID, n)
			return err
		})
		if err != nil || len(refs) > 0 {
			return refs, false, err
		}
		if end {
			refs, err = p.leftOvers(ctx, c, s, n)
			return refs, true, err
		}
	}
}

// leftOvers scans a slice for available coupons. The campaign was read before,
// so if its generation was closed then, none come later.
func (p *pool) leftOvers(ctx context.Context, c Campaign, s shard.Shard, n int) ([]Ref, error) {
	if !c.Closed() {
		return nil, errNotGenerated
	}
	var refs []Ref
	err := p.store.Read(ctx, s, func(rows Rows) (err error) {
		refs, err = rows.Stock(c.ID, 0, poolScan)
		return err
	})
	if err == nil && len(refs) == 0 {
		err = errSliceEmpty
	}
	// Other processes find the same ones: not all should begin with the first.
	rand.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
	return refs[:min(n, len(refs))], err
}

// poolScan is how many left-overs are looked for, to choose from.
const poolScan = 1_000

// slice returns the slice of a key. Beyond the limit another one is forgotten.
func (p *pool) slice(k sliceKey) *slice {
	p.mu.Lock()
	defer p.mu.Unlock()
	sl := p.slices[k]
	if sl == nil {
		for other := range p.slices {
			if len(p.slices) < maxSlices {
				break
			}
			delete(p.slices, other)
		}
		sl = new(slice)
		p.slices[k] = sl
	}
	return sl
}
