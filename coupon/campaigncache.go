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
	turn chan struct{} // full while a call reads

	mu       sync.Mutex
	campaign Campaign
	read     time.Time // zero: never
	reading  bool
	failed   time.Time // last attempt, if it failed
	why      error
}

func newCampaigns(c Campaigns) *campaigns {
	return &campaigns{control: c, known: make(map[int64]*campaignEntry)}
}

// get returns a campaign, or [ErrCampaignNotFound]. While one call reads it the
// others go on with what is known, so that a control database that hangs holds up
// one call a second.
func (c *campaigns) get(ctx context.Context, id int64) (Campaign, error) {
	e := c.entry(id)
	if got, err, known := e.now(time.Now()); known {
		return got, err
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return Campaign{}, context.Cause(ctx)
	}
	if got, err, known := e.now(time.Now()); known { // another call has read it
		return got, err
	}
	got, err := c.read(ctx, e, id)
	if errors.Is(err, ErrNoRow) {
		c.drop(id)
		return Campaign{}, ErrCampaignNotFound
	}
	return got, err
}

// read reads a campaign, or returns what was read before if that fails.
func (c *campaigns) read(ctx context.Context, e *campaignEntry, id int64) (Campaign, error) {
	began := time.Now()
	e.begin()
	ctx, cancel := context.WithTimeout(ctx, campaignTimeout)
	defer cancel()
	got, err := c.control.Campaign(ctx, id)
	return e.end(got, err, began, time.Now())
}

func (e *campaignEntry) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reading = true
}

// end takes what a read came to and returns what is known now.
func (e *campaignEntry) end(got Campaign, err error, began, now time.Time) (Campaign, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reading = false
	switch {
	case err == nil:
		e.campaign, e.read, e.failed = got, began, time.Time{}
		return got, nil
	case !errors.Is(err, ErrNoRow):
		e.failed, e.why = now, err
		if now.Sub(e.read) < campaignUsable {
			return e.campaign, nil
		}
	}
	return Campaign{}, err
}

// now returns what is known without a read, and false if that is not enough.
func (e *campaignEntry) now(now time.Time) (c Campaign, err error, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	age, failed := now.Sub(e.read), now.Sub(e.failed) < campaignFresh
	switch {
	case age < campaignFresh, age < campaignUsable && (e.reading || failed):
		return e.campaign, nil, true
	case failed:
		return Campaign{}, e.why, true
	}
	return Campaign{}, nil, false
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
		e = &campaignEntry{turn: make(chan struct{}, 1)}
		c.known[id] = e
	}
	return e
}

func (c *campaigns) drop(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, id)
}
