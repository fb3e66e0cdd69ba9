package coupon

import (
	"context"
	"errors"
	"sync"
	"time"
)

// How long a campaign is believed. A change reaches all processes within
// campaignFresh and the time of a read.
const (
	campaignFresh   = time.Second
	campaignUsable  = time.Minute            // while control is away
	campaignTimeout = 300 * time.Millisecond // of one read, which a claim waits for
	maxCampaigns    = 10_000                 // that are cached
)

// campaigns caches campaigns, so that claims go on for a while without control.
type campaigns struct {
	control Campaigns

	mu    sync.Mutex
	known map[int64]*campaignEntry
}

// A campaignEntry is a campaign as it was last read.
type campaignEntry struct {
	mu       sync.Mutex // held while it is being read
	campaign Campaign
	read     time.Time // zero: never
	failed   time.Time // last attempt, if it failed
}

func newCampaigns(c Campaigns) *campaigns {
	return &campaigns{control: c, known: make(map[int64]*campaignEntry)}
}

// get returns a campaign, or [ErrCampaignNotFound].
func (c *campaigns) get(ctx context.Context, id int64) (Campaign, error) {
	e := c.entry(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if age := now.Sub(e.read); age < campaignFresh || age < campaignUsable && now.Sub(e.failed) < campaignFresh {
		return e.campaign, nil
	}
	ctx, cancel := context.WithTimeout(ctx, campaignTimeout)
	defer cancel()
	got, err := c.control.Campaign(ctx, id)
	switch {
	case err == nil:
		e.campaign, e.read, e.failed = got, now, time.Time{}
		return got, nil
	case errors.Is(err, ErrNoRow):
		c.drop(id)
		return Campaign{}, ErrCampaignNotFound
	}
	e.failed = time.Now()
	if now.Sub(e.read) < campaignUsable {
		return e.campaign, nil
	}
	return Campaign{}, err
}

// set takes a campaign that this process has changed.
func (c *campaigns) set(campaign Campaign) {
	e := c.entry(campaign.ID)
	e.mu.Lock()
	defer e.mu.Unlock()
	if campaign.Version >= e.campaign.Version {
		e.campaign, e.read = campaign, time.Now()
	}
}

// entry returns the entry of an id. Beyond the limit another one is forgotten.
func (c *campaigns) entry(id int64) *campaignEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.known[id]
	if e == nil {
		for other := range c.known {
			if len(c.known) < maxCampaigns {
				break
			}
			delete(c.known, other)
		}
		e = new(campaignEntry)
		c.known[id] = e
	}
	return e
}

func (c *campaigns) drop(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, id)
}
