package couponsql

import (
	"context"
	"errors"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/shard"
)

const (
	campaignColumns = `id, name, kind, source, state, total, generated, per_user_limit, valid_from, valid_until, valid_days,
		time_zone, value_minor, currency, void_kind, void_days, attributes, created_at, version`
	selectCampaign  = "SELECT " + campaignColumns + " FROM campaign WHERE id = ?"
	selectCampaigns = "SELECT " + campaignColumns + " FROM campaign WHERE id > ? ORDER BY id LIMIT ?"
	updateCampaign  = `UPDATE campaign SET name = ?, kind = ?, source = ?, state = ?, total = ?, generated = ?, per_user_limit = ?,
		valid_from = ?, valid_until = ?, valid_days = ?, time_zone = ?, value_minor = ?, currency = ?, void_kind = ?, void_days = ?,
		attributes = ?, created_at = ?, version = ? WHERE id = ? AND version = ?`
)

var insertCampaign = "INSERT INTO campaign (" + campaignColumns + ") VALUES (" + marks(19) + ")"

func scanCampaign(row scanner) (c coupon.Campaign, err error) {
	err = row.Scan(&c.ID, &c.Name, &c.Kind, &c.Source, &c.State, &c.Total, &c.Generated, &c.PerUserLimit,
		timeColumn{&c.ValidFrom}, timeColumn{&c.ValidUntil}, &c.ValidDays, &c.TimeZone, &c.Value.Minor, &c.Value.Currency,
		&c.VoidPolicy.Kind, &c.VoidPolicy.Days, documentColumn(&c.Attributes), timeColumn{&c.Created}, &c.Version)
	return c, err
}

// campaignArgs returns all but the id.
func campaignArgs(c coupon.Campaign) []any {
	return []any{c.Name, c.Kind, c.Source, c.State, c.Total, c.Generated, c.PerUserLimit,
		millis(c.ValidFrom), millis(c.ValidUntil), c.ValidDays, c.TimeZone, c.Value.Minor, c.Value.Currency,
		c.VoidPolicy.Kind, c.VoidPolicy.Days, document(c.Attributes), millis(c.Created), c.Version}
}

const (
	deleteOnce = "DELETE FROM once WHERE until <= ?"
	insertOnce = "INSERT INTO once (once_key, digest, campaign_id, until) VALUES (?, ?, ?, ?)"
	selectOnce = "SELECT digest, campaign_id FROM once WHERE once_key = ?"
)

// AddCampaign adds a campaign, or returns the one that was added under the same
// key. One with the same id is [shard.ErrDuplicate].
func (c *Control) AddCampaign(ctx context.Context, add coupon.Campaign, once coupon.Once) (added coupon.Campaign, err error) {
	err = c.write(ctx, func(s session) error {
		before, err := s.addedBefore(add.ID, once)
		if err != nil || before != nil {
			if before != nil {
				added = *before
			}
			return err
		}
		added = add
		_, err = s.exec(insertCampaign, append([]any{add.ID}, campaignArgs(add)...)...)
		return err
	})
	return added, err
}

// addedBefore returns the campaign that was added under a key, or takes the key
// for this one.
func (s session) addedBefore(id int64, once coupon.Once) (*coupon.Campaign, error) {
	if once.Key == "" {
		return nil, nil
	}
	now, err := s.now()
	if err != nil {
		return nil, err
	}
	if _, err := s.exec(deleteOnce, millis(now)); err != nil {
		return nil, err
	}
	_, err = s.exec(insertOnce, once.Key, once.Digest, id, millis(now.Add(once.For)))
	if !errors.Is(err, shard.ErrDuplicate) {
		return nil, err
	}
	var digest string
	if err := s.row(selectOnce, once.Key).Scan(&digest, &id); err != nil {
		return nil, err
	}
	if digest != once.Digest {
		return nil, coupon.ErrMismatch
	}
	before, err := one(s.row(selectCampaign, id), scanCampaign)
	return &before, err
}

// SetCampaign stores a campaign if it has the version before.
func (c *Control) SetCampaign(ctx context.Context, next coupon.Campaign) (bool, error) {
	return c.change(ctx, updateCampaign, append(campaignArgs(next), next.ID, next.Version-1)...)
}

// Campaign returns a campaign, or [coupon.ErrNoRow].
func (c *Control) Campaign(ctx context.Context, id int64) (got coupon.Campaign, err error) {
	err = c.read(ctx, func(s session) (err error) {
		got, err = one(s.row(selectCampaign, id), scanCampaign)
		return err
	})
	return got, err
}

// CampaignsAfter returns up to n campaigns with an id above after, rising.
func (c *Control) CampaignsAfter(ctx context.Context, after int64, n int) (got []coupon.Campaign, err error) {
	err = c.read(ctx, func(s session) (err error) {
		got, err = listOf(s, scanCampaign, selectCampaigns, after, n)
		return err
	})
	return got, err
}
