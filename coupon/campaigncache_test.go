package coupon

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A heldCampaigns reads one campaign, unless it hangs or fails.
type heldCampaigns struct {
	Campaigns // for what is not asked

	mu       sync.Mutex
	campaign Campaign
	hangs    bool
	err      error
	reads    int
}

func (h *heldCampaigns) Campaign(ctx context.Context, _ int64) (Campaign, error) {
	h.mu.Lock()
	h.reads++
	c, hangs, err := h.campaign, h.hangs, h.err
	h.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return Campaign{}, ctx.Err()
	}
	return c, err
}

func (h *heldCampaigns) let(hangs bool, version uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hangs, h.campaign.Version = hangs, version
}

// claims gets the campaign 20 times a second for d and returns the longest that
// one waited, the newest version, and the errors.
func claims(ctx context.Context, c *campaigns, d time.Duration) (longest time.Duration, version uint32, failed int) {
	var mu sync.Mutex
	var calls sync.WaitGroup
	for range int(d / (50 * time.Millisecond)) {
		calls.Go(func() {
			began := time.Now()
			got, err := c.get(ctx, 1)
			mu.Lock()
			defer mu.Unlock()
			longest, version = max(longest, time.Since(began)), max(version, got.Version)
			if err != nil {
				failed++
			}
		})
		time.Sleep(50 * time.Millisecond)
	}
	calls.Wait()
	return longest, version, failed
}

func TestControlThatHangsHoldsUpOneClaimASecondAndForAMinuteRefusesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldCampaigns{campaign: Campaign{ID: 1, Version: 1}}
		c := newCampaigns(h)
		if _, err := c.get(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		h.let(true, 1)
		longest, _, failed := claims(t.Context(), c, 59*time.Second)
		if longest > campaignTimeout || failed > 0 || h.reads > 60 {
			t.Errorf("waited up to %v, %d failed, %d reads", longest, failed, h.reads)
		}
		time.Sleep(time.Second)
		longest, _, failed = claims(t.Context(), c, 10*time.Second)
		if longest > campaignTimeout || failed != 200 {
			t.Errorf("after a minute: waited up to %v, %d of 200 failed", longest, failed)
		}
		h.let(false, 2)
		time.Sleep(campaignFresh)
		if _, version, failed := claims(t.Context(), c, time.Second); version != 2 || failed > 0 {
			t.Errorf("back: version %d, %d failed", version, failed)
		}
	})
}

func TestChangeOfACampaignIsSeenWithinTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldCampaigns{campaign: Campaign{ID: 1, Version: 1}}
		c := newCampaigns(h)
		claims(t.Context(), c, 3*time.Second)
		h.let(false, 2)
		time.Sleep(campaignFresh + campaignTimeout)
		if got, err := c.get(t.Context(), 1); got.Version != 2 || err != nil {
			t.Errorf("version %d, %v", got.Version, err)
		}
	})
}

func TestCampaignThatIsNotThereIsAskedForAgain(t *testing.T) {
	h := &heldCampaigns{err: ErrNoRow}
	c := newCampaigns(h)
	for range 2 {
		if _, err := c.get(t.Context(), 1); !errors.Is(err, ErrCampaignNotFound) {
			t.Error(err)
		}
	}
	h.err = nil
	if _, err := c.get(t.Context(), 1); err != nil {
		t.Error(err)
	}
}
