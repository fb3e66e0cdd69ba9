package coupon

import (
	"errors"

	"github.com/tallystick/tallystick/shard"
)

// sweepLeft is how many claims of a shard are passed over in a turn, at most, to
// get at those behind them.
const sweepLeft = 1_000

// A claimSweep drives on the pending claims and binds of one shard. One whose
// coupon is on a shard that has just not answered is left to a later sweep: it
// would be waited for in vain, and so would those behind it.
type claimSweep struct {
	pending func(n int) ([]Claim, error) // the n oldest
	driveOn func(Claim) error

	silent [shard.Count]bool // did not answer
	left   map[claimKey]bool // still pending: passed over, or failed
	tried  int
	err    error // the first
}

type claimKey struct {
	user     string
	campaign int64
	request  string
}

func newClaimSweep() *claimSweep { return &claimSweep{left: make(map[claimKey]bool)} }

// run drives on the first page, and as many claims behind it as others were left.
// It returns the first failure after all were tried.
func (w *claimSweep) run(page []Claim) error {
	for n := sweepPage; ; {
		for _, c := range page {
			w.try(c)
		}
		if len(page) < n || w.tried >= sweepPage || len(w.left) >= sweepLeft {
			return w.err
		}
		n = sweepPage + len(w.left)
		var err error
		if page, err = w.pending(n); err != nil {
			return err
		}
	}
}

// try drives one claim on, unless that was tried or would be in vain.
func (w *claimSweep) try(c Claim) {
	key, on := claimKey{c.User, c.Campaign, c.Request}, c.Coupon.Shard()
	if w.silent[on] || w.left[key] {
		w.left[key] = true
		return
	}
	w.tried++
	err := w.driveOn(c)
	if err == nil {
		return
	}
	w.left[key], w.silent[on] = true, errors.Is(err, shard.ErrUnavailable)
	if w.err == nil {
		w.err = err
	}
}
