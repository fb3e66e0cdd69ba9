package coupon

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/shard"
)

// pendingClaims is a shard's pending claims, the oldest first.
type pendingClaims struct {
	claims []Claim
	fail   map[shard.Shard]error // of the coupon's shard
	tried  int
}

func (p *pendingClaims) add(n int, on shard.Shard) {
	for range n {
		p.claims = append(p.claims, Claim{User: fmt.Sprint(len(p.claims)), Coupon: ID(1024 + int(on))})
	}
}

// sweep is one turn.
func (p *pendingClaims) sweep() error {
	w := newClaimSweep()
	w.pending = func(n int) ([]Claim, error) { return slices.Clone(p.claims[:min(n, len(p.claims))]), nil }
	w.driveOn = func(c Claim) error {
		p.tried++
		if err := p.fail[c.Coupon.Shard()]; err != nil {
			return err
		}
		p.claims = slices.DeleteFunc(p.claims, func(o Claim) bool { return o.User == c.User })
		return nil
	}
	page, _ := w.pending(sweepPage)
	return w.run(page)
}

func TestSweepPassesOverClaimsThatWaitForAShard(t *testing.T) {
	p := pendingClaims{fail: map[shard.Shard]error{7: shard.ErrUnavailable}}
	p.add(250, 7)
	p.add(60, 8)
	if err := p.sweep(); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("no word of the failure: %v", err)
	}
	if len(p.claims) != 250 || p.tried != 61 {
		t.Errorf("%d left, %d tried: want those of shard 7 left and one of them tried", len(p.claims), p.tried)
	}
	p.fail = nil
	for range 3 {
		if err := p.sweep(); err != nil {
			t.Error(err)
		}
	}
	if len(p.claims) != 0 {
		t.Errorf("%d left when the shard was back", len(p.claims))
	}
}

func TestSweepTriesAPageAtMost(t *testing.T) {
	p := pendingClaims{fail: map[shard.Shard]error{7: shard.ErrUnavailable}}
	p.add(50, 7)
	p.add(1_000, 8)
	p.sweep()
	if p.tried > 2*sweepPage || len(p.claims) > 950 {
		t.Errorf("%d tried, %d left", p.tried, len(p.claims))
	}
}

func TestSweepEndsHoweverManyClaimsFail(t *testing.T) {
	for name, why := range map[string]error{"away": shard.ErrUnavailable, "for another reason": errors.New("no")} {
		t.Run(name, func(t *testing.T) {
			p := pendingClaims{fail: map[shard.Shard]error{7: why}}
			p.add(5_000, 7)
			if err := p.sweep(); !errors.Is(err, why) || p.tried == 0 || p.tried > sweepPage {
				t.Errorf("%v, %d tried", err, p.tried)
			}
		})
	}
}
