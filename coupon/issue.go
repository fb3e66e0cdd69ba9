package coupon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// Limits of an order.
const (
	MaxIssue    = 1_000_000 // coupons a batch
	issueAtOnce = 500       // coupons that are issued while the caller waits
	userChunk   = 250       // coupons a transaction, if each has a wallet row too
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

// fulfil issues what is missing of a batch. Several processes may do it at the
// same time: the number of a chunk is there once.
func (s *Service) fulfil(ctx context.Context, key BatchKey, done *counter) error {
	c, err := s.Campaign(ctx, key.Campaign)
	if err != nil {
		return err
	}
	for {
		b, err := s.batch(ctx, key)
		if err != nil {
			return err
		}
		if b.Done {
			done.n.Store(b.given())
			return b.lacking()
		}
		done.n.Store(0)
		short, err := s.issueQuotas(ctx, c, b, done)
		if err != nil {
			return err
		}
		s.reach(StepIssueChunked, nil)
		next := b.afterwards(short)
		if err := s.setBatch(ctx, next); err != nil {
			return err
		}
		if next.Done {
			s.reach(StepIssueDone, nil)
		}
	}
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

// given returns how many coupons a batch that is done has.
func (b Batch) given() (n int64) {
	for _, q := range b.Quota {
		n += q
	}
	return n
}

// lacking refuses what a batch that is done did not get.
func (b Batch) lacking() error {
	if n := b.Count - b.given(); n > 0 {
		return ErrPoolExhausted.With("the campaign has %d coupons fewer than batch %s needs", n, b.Number)
	}
	return nil
}

// afterwards returns the batch after a turn in which some shards lacked coupons:
// done if none did; otherwise what they lacked is asked of the others. The shards
// that lacked any have none left, for ever: if all do the batch is done with what
// it has.
func (b Batch) afterwards(short [shard.Count]int64) Batch {
	b.Version++
	var lacking int64
	var others []int
	for at, n := range short {
		lacking += n
		b.Quota[at] -= n
		if n == 0 && !b.Dry[at] {
			others = append(others, at)
		}
		b.Dry[at] = b.Dry[at] || n > 0
	}
	if lacking == 0 || len(others) == 0 {
		b.Done = true
		return b
	}
	for i, at := range others {
		b.Quota[at] += (lacking + int64(i)) / int64(len(others))
	}
	return b
}

// issueQuotas issues what is missing of each shard's quota and returns how many
// coupons each lacks.
func (s *Service) issueQuotas(ctx context.Context, c Campaign, b Batch, done *counter) (short [shard.Count]int64, err error) {
	err = eachShard(ctx, generators, func(ctx context.Context, at shard.Shard) (err error) {
		if b.Quota[at] > 0 {
			short[at], err = s.issueQuota(ctx, c, b, at, done)
		}
		return err
	})
	return short, err
}

// issueQuota counts what is there of the quota, too. Only failures in a row end it.
func (s *Service) issueQuota(ctx context.Context, c Campaign, b Batch, at shard.Shard, done *counter) (short int64, err error) {
	var counted int64
	for try := 1; ; try++ {
		var have []Chunk
		err := s.store.Read(ctx, at, func(rows Rows) (err error) {
			have, err = rows.Chunks(b.Campaign, b.Number)
			return err
		})
		if err != nil {
			return 0, err
		}
		done.n.Add(total(have) - counted)
		counted = total(have)
		missing := b.Quota[at] - counted
		if missing <= 0 {
			return 0, s.walletOf(ctx, b, at, have)
		}
		issued, dry, err := s.issueChunk(ctx, c, b, at, len(have), missing)
		again := errors.Is(err, shard.ErrUnknown) || errors.Is(err, shard.ErrBusy)
		if err != nil && (!again || try >= chunkTries) {
			return 0, err
		}
		s.reach(StepIssueChunk, err)
		if dry {
			return missing, s.walletOf(ctx, b, at, have)
		}
		if issued > 0 {
			try = 0
		}
	}
}

func total(chunks []Chunk) (n int64) {
	for _, c := range chunks {
		n += int64(len(c.IDs))
	}
	return n
}

// issueChunk issues one chunk of a batch, in one transaction. dry tells that the
// shard has no coupon left.
func (s *Service) issueChunk(ctx context.Context, c Campaign, b Batch, at shard.Shard, k int, missing int64) (n int, dry bool, err error) {
	size := chunkSize
	if b.User != "" {
		size = userChunk
	}
	size = int(min(int64(size), missing))
	err = s.store.Write(ctx, at, func(tx Tx) error {
		n, dry = 0, false
		refs, err := nextOf(tx, c, size)
		if err != nil {
			return err
		}
		if len(refs) == 0 {
			dry = true
			return unlessIssued(tx, b, k)
		}
		like, err := c.issue(refs[0], b.User, b.Order, tx.Now())
		if err != nil {
			return err
		}
		issued, err := tx.IssueAll(refs, like)
		if err != nil || len(issued) == 0 {
			return err
		}
		if err := keepAll(tx, issued, like, at); err != nil {
			return err
		}
		fresh, err := tx.PutChunk(Chunk{BatchKey: b.BatchKey, Shard: at, Chunk: k, IDs: ids(issued)})
		if err == nil && !fresh {
			err = errIssuedToo
		}
		n = len(issued)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return n, dry, nil
}

// errIssuedToo tells that another process issues the batch too: look again.
var errIssuedToo = fmt.Errorf("%w: another process issues the batch", shard.ErrBusy)

// unlessIssued makes sure that the k chunks which were seen are all there are of a
// batch: that a shard has no coupon left says nothing if they went to this batch.
func unlessIssued(tx Tx, b Batch, k int) error {
	have, err := tx.Chunks(b.Campaign, b.Number)
	if err == nil && len(have) != k {
		err = errIssuedToo
	}
	return err
}

// keepAll puts coupons that are on their user's own shard into the wallet.
func keepAll(tx Tx, issued []Ref, like Coupon, at shard.Shard) error {
	if like.User == "" || !shard.Same(shard.Text(like.User), at) {
		return nil
	}
	for _, r := range issued {
		like.ID, like.Code = r.ID, r.Code
		if err := tx.Keep(like); err != nil {
			return err
		}
	}
	return nil
}

// nextOf returns coupons of a shard's stock to try: from the cursor, then what
// others left. None means that there are none.
func nextOf(tx Tx, c Campaign, n int) ([]Ref, error) {
	for {
		refs, end, err := tx.Advance(c.ID, n)
		if err != nil || len(refs) > 0 {
			return refs, err
		}
		if end {
			break
		}
	}
	if !c.Closed() {
		return nil, ErrPoolRefilling
	}
	return tx.Stock(c.ID, 0, n)
}

func ids(refs []Ref) []ID {
	all := make([]ID, len(refs))
	for i, r := range refs {
		all[i] = r.ID
	}
	return all
}

// walletOf puts a user's coupons that are on another shard into the wallet.
// Those on the user's own shard are there already.
func (s *Service) walletOf(ctx context.Context, b Batch, at shard.Shard, chunks []Chunk) error {
	home := shard.Text(b.User)
	if b.User == "" || shard.Same(home, at) {
		return nil
	}
	s.reach(StepIssueWallet, nil)
	for _, chunk := range chunks {
		coupons, err := s.couponsOn(ctx, at, chunk.IDs)
		if err != nil {
			return err
		}
		err = s.store.Write(ctx, home, func(tx Tx) error {
			for _, c := range coupons {
				if err := tx.Keep(c); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// batchCoupons returns the coupons of a batch, by rising id.
func (s *Service) batchCoupons(ctx context.Context, key BatchKey) ([]Coupon, error) {
	var all [shard.Count][]Coupon
	err := eachShard(ctx, generators, func(ctx context.Context, at shard.Shard) error {
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
