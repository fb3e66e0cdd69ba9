package coupon

import (
	"context"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// A Store keeps coupons on the shards. Package coupontest has the suite that an
// implementation passes, couponsql the implementations. Errors of the databases
// come as package shard names them.
type Store interface {
	// Write runs fn in a transaction on the shard of key; see [shard.Cluster].
	Write(ctx context.Context, key shard.Key, fn func(Tx) error) error
	// Read runs fn on the shard of key.
	Read(ctx context.Context, key shard.Key, fn func(Rows) error) error
	// FanOut runs fn on several shards; see [shard.Cluster].
	FanOut(ctx context.Context, reason string, b shard.Budget, shards []shard.Shard, fn func(shard.Shard, Rows) error) error
}

// Rows reads from one shard.
type Rows interface {
	// Coupon returns a coupon, or [ErrNoRow].
	Coupon(id ID) (Coupon, error)
	// Coupons returns those of ids that there are, in no order; 500 at most.
	Coupons(ids []ID) ([]Coupon, error)
	// ByCode returns the coupon of a code, or [ErrNoRow].
	ByCode(code Code) (Coupon, error)
	// Events returns the coupon's ledger, by rising version, without what was done
	// in bulk.
	Events(id ID) ([]Event, error)
	// Stock returns up to n available coupons of a campaign with an id above
	// after, by rising id. It looks at every coupon in between.
	Stock(campaign int64, after ID, n int) ([]Ref, error)
	// Claims returns a user's claims and binds of a campaign, by rising number.
	Claims(user string, campaign int64) ([]Claim, error)
	// Pending returns up to n claims that are not done and older than before.
	Pending(before time.Time, n int) ([]Claim, error)
	// Wallet returns up to n coupons of a user beyond after, by rising end and
	// id, that the filter chooses. It looks at no more than a bounded number of
	// the others in between, so a page may be short, or empty, before the end.
	Wallet(user string, filter WalletFilter, after WalletKey, n int) (WalletPage, error)
	// Batch returns a batch, or [ErrNoRow].
	Batch(campaign int64, number string) (Batch, error)
	// PendingBatches returns up to n batches that are not done and older than
	// before.
	PendingBatches(before time.Time, n int) ([]Batch, error)
	// Chunks returns the chunks of a batch that are on this shard, by number.
	Chunks(campaign int64, batch string) ([]Chunk, error)
	// OrderBatches returns an order's batches.
	OrderBatches(order string) ([]BatchKey, error)
	// Redeemed returns up to n coupons with an id above after that an order
	// redeemed, by rising id, as far as this shard was told.
	Redeemed(order string, after ID, n int) ([]ID, error)
}

// A Tx reads from and writes to one shard, all or nothing. A coupon that it reads,
// alone, is changed by nobody else until it ends.
type Tx interface {
	Rows
	Changes
	Claiming
	Bulk
	// Now is the database's clock, the same for the whole transaction.
	Now() time.Time
}

// Changes are what flows do to coupons.
type Changes interface {
	// Change stores c, but for campaign, code and creation, which never change, with
	// a line of its ledger, which is an event for whoever follows the shard, provided
	// that the coupon has version c.Version - 1. Otherwise the transaction fails with
	// [shard.ErrNoMatch], here or at its end. With an event that may happen only once
	// and did it fails with [shard.ErrDuplicate], likewise.
	Change(c Coupon, e Event) error
	// Keep writes c into its user's wallet, on this shard, unless a newer version
	// is there.
	Keep(c Coupon) error
	// KeepNew is Keep for a coupon that gets its user in this transaction, which it
	// does once. It costs a third. If the wallet has it the transaction fails with
	// [shard.ErrDuplicate].
	KeepNew(c Coupon) error
	// KeepStatus is Keep for a coupon that this transaction changes and the wallet
	// has, in an older version therefore: it brings status, end, hold and redemption
	// up to date, which is what changes in a coupon that has its user. It costs half.
	KeepStatus(c Coupon) error
	// KeepRedemption writes r into the list of its order's coupons, on this shard,
	// unless a newer version is there.
	KeepRedemption(r OrderRedemption) error
}

// Claiming is what claims and binds need beside.
type Claiming interface {
	// PutClaim adds a claim. If the user has one with the same number or request
	// in the campaign, it is [shard.ErrDuplicate].
	PutClaim(c Claim) error
	// MoveClaim gives a pending claim another coupon if it still has from, and
	// reports whether.
	MoveClaim(c Claim, from ID) (bool, error)
	// FinishClaim makes a pending claim of c's coupon done, and reports whether.
	FinishClaim(c Claim) (bool, error)
	// DropClaim removes a pending claim of c's coupon, and reports whether.
	DropClaim(c Claim) (bool, error)
	// Advance moves the campaign's cursor over up to n coupons and returns those
	// of them that are available. Nobody else is given them by a cursor. None and
	// end tell that the cursor is at the end of what there is.
	Advance(campaign int64, n int) (refs []Ref, end bool, err error)
}

// Bulk is what generating and issuing many coupons needs.
type Bulk interface {
	// PutBatch adds a batch, or changes nothing and returns the one that is
	// there.
	PutBatch(b Batch) (Batch, error)
	// SetBatch stores b if the batch has version b.Version - 1, and reports
	// whether.
	SetBatch(b Batch) (bool, error)
	// PutChunk adds a chunk and reports whether it was not there yet.
	PutChunk(c Chunk) (bool, error)
	// Add adds new coupons, 500 at most, which are alike but for id and code, and
	// one event for all. An id or a code that is there already is
	// [shard.ErrDuplicate].
	Add(coupons []Coupon) error
	// IssueAll gives available coupons to an order or a user as c says, which is
	// the same for all but id and code, with one event for all. It returns those
	// that were still available.
	IssueAll(refs []Ref, c Coupon) ([]Ref, error)
	// PutOrderBatch remembers that a batch belongs to an order.
	PutOrderBatch(order string, key BatchKey) error
}

// A Claim is a coupon taken by a user, or bound to one.
type Claim struct {
	User     string
	Campaign int64
	Request  string // the user's business number, once per campaign
	Number   int    // 1 to the campaign's limit; 0: a bind, which does not count
	Coupon   ID
	Done     bool // false: another shard has the coupon, and perhaps does not know yet
	At       time.Time
}

// A BatchKey names a batch.
type BatchKey struct {
	Campaign int64
	Number   string // business number, once per campaign
}

// A Batch is an order for many coupons.
type Batch struct {
	BatchKey
	Order   string
	Count   int64
	User    string             // "": bearer coupons
	Quota   [shard.Count]int64 // how many coupons of it each shard is to give
	Dry     [shard.Count]bool  // shards that have none left
	Done    bool
	At      time.Time
	Version uint32
}

// A Chunk records coupons of a batch, or of generation, that one transaction
// wrote.
type Chunk struct {
	BatchKey // Number "": generation
	Shard    shard.Shard
	Chunk    int // from 0 on, per shard
	IDs      []ID
}

// An OrderRedemption is that an order redeemed a coupon, or that this was voided.
type OrderRedemption struct {
	Order   string
	Coupon  ID
	Version uint32 // of the coupon, after that
	Voided  bool
}

// A WalletKey is a place in a wallet, which is ordered by end and then by id.
type WalletKey struct {
	Until time.Time
	ID    ID
}

// A WalletPage is part of a wallet. Its coupons have what a wallet shows: no
// kind, void policy or attributes, not who redeemed or reserved, no times of
// issue and change.
type WalletPage struct {
	Coupons []Coupon
	Next    WalletKey // where to go on
	End     bool      // there is nothing beyond Next
}

// A WalletFilter chooses coupons of a wallet.
type WalletFilter struct {
	Status []Status // as they are at Now; none: all
	Now    time.Time
}
