package coupon

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// Limits of a campaign.
const (
	MaxTotal      = 100_000_000
	MaxList       = 1_000   // campaigns a page
	maxName       = 200     // bytes
	maxAttributes = 1 << 10 // bytes
	maxPerUser    = 1_000
	maxKey        = 255 // bytes of an idempotency key
)

// keyKnown is how long an idempotency key is.
const keyKnown = 24 * time.Hour

// errPerhapsCreated is not retryable: without a key another campaign would come of
// it.
var errPerhapsCreated = refusal(ErrShardUnavailable.Code, "the database did not say whether it created the campaign: look before you try again, or create with a key")

// CreateCampaign adds a campaign, which is active at once. ID, state, counts and
// time of c are set here, and so is what it leaves out: see the constants. Under
// an idempotency key, up to 255 bytes, that was used within a day it returns the
// campaign that was created then; with other fields it fails with [ErrMismatch].
func (s *Service) CreateCampaign(ctx context.Context, c Campaign, key string) (Campaign, error) {
	odd := strings.IndexFunc(key, func(r rune) bool { return r < 0x20 || r > 0x7e })
	if len(key) > maxKey || odd >= 0 {
		return Campaign{}, invalidField("Idempotency-Key", "the idempotency key is %.70q: want at most %d characters of ASCII", key, maxKey)
	}
	once := Once{Key: key, Digest: c.digest(), For: keyKnown}
	c = c.withDefaults(time.Now())
	if err := c.validate(); err != nil {
		return Campaign{}, err
	}
	var err error
	if c.ID, err = s.numbers.Next(ctx, CampaignNumbers); err != nil {
		return Campaign{}, err
	}
	c, err = s.control.AddCampaign(ctx, c, once)
	if errors.Is(err, shard.ErrUnknown) && key == "" {
		return Campaign{}, errPerhapsCreated
	}
	if errors.Is(err, shard.ErrDuplicate) {
		return Campaign{}, fmt.Errorf("campaign number %d is another campaign's: servers on the same databases need one store of sequences (serve --store dynamodb): %w", c.ID, err)
	}
	if err != nil {
		return Campaign{}, s.refusal(err)
	}
	s.campaigns.set(c)
	return c, nil
}

// digest tells what is asked for from anything else.
func (c Campaign) digest() string {
	b, _ := json.Marshal(c) // of numbers, texts and times
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// withDefaults returns a new campaign with what was left out.
func (c Campaign) withDefaults(now time.Time) Campaign {
	if c.Kind == "" {
		c.Kind = FixedAmount
	}
	if c.Source == "" {
		c.Source = Generated
	}
	if c.PerUserLimit == 0 {
		c.PerUserLimit = 1
	}
	if c.VoidPolicy.Kind == "" {
		c.VoidPolicy.Kind = Restore
	}
	if c.ValidFrom.IsZero() {
		c.ValidFrom = now
	}
	c.ValidFrom, c.Created = milli(c.ValidFrom), milli(now)
	if !c.ValidUntil.IsZero() {
		c.ValidUntil = milli(c.ValidUntil)
	}
	c.State, c.Generated, c.Version = Active, 0, 1
	return c
}

// milli cuts an instant to what a database keeps.
func milli(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// validate refuses a campaign with a field that cannot be.
func (c Campaign) validate() error {
	switch {
	case c.Name == "" || len(c.Name) > maxName:
		return invalidField("name", "name has %d bytes: want 1 to %d", len(c.Name), maxName)
	case c.Kind != FixedAmount:
		return invalidField("kind", "kind is %.40q: want %s", c.Kind, FixedAmount)
	case c.Source != Generated:
		return invalidField("source", "source is %.40q: want %s", c.Source, Generated)
	case c.Total < 1 || c.Total > MaxTotal:
		return invalidField("total", "total is %d: want 1 to %d", c.Total, MaxTotal)
	case c.PerUserLimit < 1 || c.PerUserLimit > maxPerUser:
		return invalidField("per_user_limit", "per_user_limit is %d: want 1 to %d", c.PerUserLimit, maxPerUser)
	case c.VoidPolicy.Kind != Restore || c.VoidPolicy.Days != 0:
		return invalidField("void_policy", "void_policy is %.40q with %d days: want %s without days", c.VoidPolicy.Kind, c.VoidPolicy.Days, Restore)
	case len(c.Attributes) > maxAttributes:
		return invalidField("attributes", "attributes have %d bytes: want at most %d", len(c.Attributes), maxAttributes)
	case c.Attributes != nil && !json.Valid(c.Attributes):
		return invalidField("attributes", "attributes are not JSON")
	}
	if err := c.Value.Validate(); err != nil {
		return err
	}
	v, err := c.validity()
	if err != nil {
		return err
	}
	return v.Validate()
}

// Campaign returns a campaign as it is now.
func (s *Service) Campaign(ctx context.Context, id int64) (Campaign, error) {
	c, err := s.control.Campaign(ctx, id)
	if errors.Is(err, ErrNoRow) {
		return c, ErrCampaignNotFound
	}
	return c, s.refusal(err)
}

// Campaigns returns up to n campaigns with an id above after, rising.
func (s *Service) Campaigns(ctx context.Context, after int64, n int) ([]Campaign, error) {
	all, err := s.control.CampaignsAfter(ctx, after, min(n, MaxList))
	return all, s.refusal(err)
}

// MoveCampaign gives a campaign another state. Asked again it changes nothing.
func (s *Service) MoveCampaign(ctx context.Context, id int64, to CampaignState) (Campaign, error) {
	return s.update(ctx, id, func(c Campaign) (Campaign, error) { return c.move(to) })
}

// update changes a campaign; whoever loses a race changes the newer one.
func (s *Service) update(ctx context.Context, id int64, edit func(Campaign) (Campaign, error)) (Campaign, error) {
	for range raceLimit {
		c, err := s.Campaign(ctx, id)
		if err != nil {
			return c, err
		}
		next, err := edit(c)
		if err != nil || next.Version == c.Version {
			return next, err
		}
		won, err := s.control.SetCampaign(ctx, next)
		if err != nil {
			return c, s.refusal(err)
		}
		if won {
			s.campaigns.set(next)
			return next, nil
		}
	}
	return Campaign{}, ErrInProgress
}
