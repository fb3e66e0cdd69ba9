package coupon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// Limits of an order. A transaction changes 500 rows at most: those of coupons, of
// the wallet, and up to four others, which are the chunk, the message and the
// campaign's cursor, where it is made and moved.
const (
	MaxIssue    = 1_000_000 // coupons a batch
	issueAtOnce = 500       // coupons that are issued while the caller waits
	orderChunk  = 496       // coupons a transaction
	userChunk   = 248       // coupons a transaction, if each has a wallet row too
)

// An IssueRequest asks for many coupons for an order.
type IssueRequest struct {
	Campaign int64
	Batch    string // business number, once per campaign
	Order    string
	Count    int64
	User     string // "": bearer coupons
}

// An Issue is what such a request came to.
type Issue struct {
	Batch     Batch
	Coupons   []Coupon   // if they were issued at once
	Operation *Operation // if they were not
	At        time.Time
}

// Issue gives coupons of a campaign's stock to an order. The batch number makes
// it happen once. Up to 500 are issued while the caller waits, more by an
// operation. They come from all shards evenly; those of a user from the user's
// own shard while it has any.
//
// The batch is written first, on the shard of its number, then, per shard, chunks
// of coupons with the number of the chunk, then that the batch is done. If the
// process dies
//
//	before the batch:       nothing happened
//	between two chunks:     the batch is PENDING; the operation, or after a minute
//	                        the sweeper, goes on after the chunks that are there
//	before "done" is there: likewise, with no chunk left to issue
func (s *Service) Issue(ctx context.Context, r IssueRequest) (Issue, error) {
	if err := r.check(); err != nil {
		return Issue{}, err
	}
	if _, err := s.campaigns.get(ctx, r.Campaign); err != nil {
		return Issue{}, s.refusal(err)
	}
	b, err := s.placeBatch(ctx, r)
	if err != nil {
		return Issue{}, s.refusal(err)
	}
	if b.Count > issueAtOnce {
		op, err := s.start(ctx, b.operation())
		return Issue{Batch: b, Operation: &op}, err
	}
	if err := s.fulfil(ctx, b.BatchKey, new(counter)); err != nil {
		return Issue{}, s.refusal(err)
	}
	coupons, err := s.batchCoupons(ctx, b.BatchKey)
	return Issue{Batch: b, Coupons: coupons, At: time.Now()}, s.refusal(err)
}

func (r IssueRequest) check() error {
	if err := CheckNumber("batch_no", r.Batch); err != nil {
		return err
	}
	if r.Count < 1 || r.Count > MaxIssue {
		return invalidField("count", "count is %d: want 1 to %d", r.Count, MaxIssue)
	}
	return Call{Order: r.Order, User: r.User}.check("order_no")
}

// operation returns the long work that issues a batch.
func (b Batch) operation() Operation {
	return Operation{
		Kind: Issuing, Subject: fmt.Sprintf("%d/%s", b.Campaign, b.Number), Campaign: b.Campaign, Batch: b.Number, Total: b.Count,
	}
}

// placeBatch writes the batch, or returns the one of the same number. A number
// that was used with other fields is refused.
func (s *Service) placeBatch(ctx context.Context, r IssueRequest) (Batch, error) {
	asked := Batch{BatchKey: BatchKey{r.Campaign, r.Batch}, Order: r.Order, Count: r.Count, User: r.User, Version: 1}
	asked.Quota = spread(r.Count)
	if r.User != "" {
		asked.Quota = [shard.Count]int64{}
		asked.Quota[shard.Text(r.User).Bucket().Shard()] = r.Count
	}
	var b Batch
	err := s.store.Write(ctx, shard.Text(r.Batch), func(tx Tx) (err error) {
		asked.At = tx.Now()
		b, err = tx.PutBatch(asked)
		return err
	})
	if err != nil {
		return b, err
	}
	if b.Order != r.Order || b.Count != r.Count || b.User != r.User {
		return b, ErrMismatch.With("batch %s is for %d coupons for order %s", b.Number, b.Count, b.Order)
	}
	s.reach(StepIssueBatch, nil)
	err = s.tellOrder(ctx, b)
	s.reach(StepIssuePlaced, err)
	return b, err
}

// tellOrder makes the batch known on its order's shard.
func (s *Service) tellOrder(ctx context.Context, b Batch) error {
	return s.store.Write(ctx, shard.Text(b.Order), func(tx Tx) error {
		return tx.PutOrderBatch(b.Order, b.BatchKey)
	})
}

func (s *Service) batch(ctx context.Context, key BatchKey) (b Batch, err error) {
	err = s.store.Read(ctx, shard.Text(key.Number), func(rows Rows) (err error) {
		b, err = rows.Batch(key.Campaign, key.Number)
		return err
	})
	return b, err
}

// setBatch stores a batch. That another process was faster is no failure: the
// caller looks again.
func (s *Service) setBatch(ctx context.Context, b Batch) error {
	return s.store.Write(ctx, shard.Text(b.Number), func(tx Tx) error {
		_, err := tx.SetBatch(b)
		return err
	})
}

// batchCoupons returns the coupons of a batch, by rising id.
func (s *Service) batchCoupons(ctx context.Context, key BatchKey) ([]Coupon, error) {
	var all [shard.Count][]Coupon
	err := eachShard(ctx, shardsAtOnce, func(ctx context.Context, at shard.Shard) error {
		return s.store.Read(ctx, at, func(rows Rows) error {
			chunks, err := rows.Chunks(key.Campaign, key.Number)
			for _, chunk := range chunks {
				coupons, failed := rows.Coupons(chunk.IDs)
				all[at], err = append(all[at], coupons...), errors.Join(err, failed)
			}
			return err
		})
	})
	return slices.SortedFunc(slices.Values(slices.Concat(all[:]...)), func(a, b Coupon) int { return int(a.ID - b.ID) }), err
}

// couponsOn returns coupons of one shard.
func (s *Service) couponsOn(ctx context.Context, at shard.Shard, ids []ID) (coupons []Coupon, err error) {
	err = s.store.Read(ctx, at, func(rows Rows) (err error) {
		coupons, err = rows.Coupons(ids)
		return err
	})
	return coupons, err
}

// operateOn finishes a batch that has been pending: its order may not know it, and
// a large one has an operation, which this brings into being if its process died
// before it could.
func (s *Service) operateOn(ctx context.Context, b Batch) error {
	if err := s.tellOrder(ctx, b); err != nil {
		return err
	}
	if b.Count > issueAtOnce {
		_, err := s.start(ctx, b.operation())
		return err
	}
	return unlessRefused(s.fulfil(ctx, b.BatchKey, new(counter)))
}
