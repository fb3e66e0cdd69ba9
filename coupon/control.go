package coupon

import (
	"context"
	"time"
)

// A Control is the database beside the shards: campaigns and long work. Claims
// go on without it for a minute, redemptions for ever.
type Control interface {
	Campaigns
	Operations
}

// Campaigns keeps campaigns.
type Campaigns interface {
	// AddCampaign adds a campaign and returns it. Under a key that is known it
	// adds none: it returns the one that was added then or, if the digest is
	// another, [ErrMismatch].
	AddCampaign(ctx context.Context, c Campaign, once Once) (Campaign, error)
	// SetCampaign stores c if the campaign has version c.Version - 1, and reports
	// whether.
	SetCampaign(ctx context.Context, c Campaign) (bool, error)
	// Campaign returns a campaign, or [ErrNoRow].
	Campaign(ctx context.Context, id int64) (Campaign, error)
	// CampaignsAfter returns up to n campaigns with an id above after, rising.
	CampaignsAfter(ctx context.Context, after int64, n int) ([]Campaign, error)
}

// A Once makes a call happen once under a key, for a while.
type Once struct {
	Key    string        // the caller's; "": none
	Digest string        // of the request: 64 characters at most
	For    time.Duration // how long the key is known
}

// Operations keeps long work.
type Operations interface {
	// StartOperation adds an operation unless one of the same kind and subject
	// is there that is not done, and returns the one that is there then.
	StartOperation(ctx context.Context, o Operation) (Operation, error)
	// Operation returns an operation, or [ErrNoRow].
	Operation(ctx context.Context, id int64) (Operation, error)
	// LeaseOperation gives one operation that is not done and that nobody has a
	// lease of to owner for ttl, the one that has waited longest, or returns
	// [ErrNoRow].
	LeaseOperation(ctx context.Context, owner string, ttl time.Duration) (Operation, error)
	// SaveOperation stores progress of o and prolongs owner's lease, and reports
	// whether owner still had it. Done ends the lease.
	SaveOperation(ctx context.Context, o Operation, owner string, ttl time.Duration) (bool, error)
}

// An Operation is long work under way.
type Operation struct {
	ID        int64
	Kind      string // generate or issue
	Subject   string // what it works on; one operation of a kind at a time
	Campaign  int64
	Batch     string // of an issue
	Done      bool
	Total     int64
	Succeeded int64
	Failed    int64
	Error     string // code of the refusal that ended it; "": none
}
