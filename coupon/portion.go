package coupon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// A portion is what one shard gives of a batch: its quota.
type portion struct {
	s  *Service
	c  Campaign
	b  Batch
	at shard.Shard
}

// fulfil issues what is missing of the quota and returns how many coupons the
// shard lacks; done counts what was there already, too. Only failures in a row end
// it. Before each chunk but the first it leaves the database to others for as long
// as the one before took.
func (p portion) fulfil(ctx context.Context, done *counter) (short int64, err error) {
	var have []Chunk // nil: to be read, at first or because another process may have added some
	var counted int64
	var rest time.Duration
	for failures := 0; ; {
		if have == nil {
			if have, err = p.s.chunks(ctx, p.at, p.b.BatchKey); err != nil {
				return 0, err
			}
		}
		done.n.Add(total(have) - counted)
		counted = total(have)
		missing := p.b.Quota[p.at] - counted
		if missing <= 0 {
			return 0, p.keepAtHome(ctx, have)
		}
		wait(ctx, rest)
		begin := time.Now()
		issued, dry, err := p.issueChunk(ctx, len(have), missing)
		p.s.reach(StepIssueChunk, err)
		switch {
		case dry:
			return missing, p.keepAtHome(ctx, have)
		case len(issued) > 0:
			have, failures = append(have, Chunk{IDs: issued}), 0
			rest = time.Since(begin)
		case err != nil:
			have = nil
			if failures++; failures == chunkTries || !errors.Is(err, shard.ErrUnknown) && !errors.Is(err, shard.ErrBusy) {
				return 0, err
			}
		}
	}
}

func total(chunks []Chunk) (n int64) {
	for _, c := range chunks {
		n += int64(len(c.IDs))
	}
	return n
}

// issueChunk issues chunk k, in one transaction, and returns its coupons: none if
// others took those that it tried. dry tells that the shard has no coupon left.
func (p portion) issueChunk(ctx context.Context, k int, missing int64) (issued []ID, dry bool, err error) {
	size := orderChunk
	if p.b.User != "" {
		size = userChunk
	}
	size = int(min(int64(size), missing))
	err = p.s.store.Write(ctx, p.at, func(tx Tx) error {
		issued, dry = nil, false
		refs, err := nextOf(tx, p.c, size)
		if err != nil {
			return err
		}
		if len(refs) == 0 {
			dry = true
			return p.unlessIssued(tx, k)
		}
		issued, err = p.issue(tx, k, refs)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return issued, dry, nil
}

// issue issues those of refs that are still available, as chunk k.
func (p portion) issue(tx Tx, k int, refs []Ref) ([]ID, error) {
	like, err := p.c.issue(refs[0], p.b.User, p.b.Order, tx.Now())
	if err != nil {
		return nil, err
	}
	issued, err := tx.IssueAll(refs, like)
	if err != nil || len(issued) == 0 {
		return nil, err
	}
	if err := keepAll(tx, issued, like, p.at); err != nil {
		return nil, err
	}
	chunk := Chunk{BatchKey: p.b.BatchKey, Shard: p.at, Chunk: k, IDs: ids(issued)}
	fresh, err := tx.PutChunk(chunk)
	if err == nil && !fresh {
		err = errIssuedToo
	}
	return chunk.IDs, err
}

// errIssuedToo tells that another process issues the batch too: look again.
var errIssuedToo = fmt.Errorf("%w: another process issues the batch", shard.ErrBusy)

// unlessIssued makes sure that the k chunks which were seen are all there are:
// that a shard has no coupon left says nothing if they went to this batch.
func (p portion) unlessIssued(tx Tx, k int) error {
	have, err := tx.Chunks(p.b.Campaign, p.b.Number)
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
		if err := tx.KeepNew(like); err != nil {
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
		return nil, errNotGenerated
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

// keepAtHome puts a user's coupons that are on another shard into the wallet.
// Those on the user's own shard are there already.
func (p portion) keepAtHome(ctx context.Context, chunks []Chunk) error {
	if p.b.User == "" || shard.Same(shard.Text(p.b.User), p.at) {
		return nil
	}
	p.s.reach(StepIssueWallet, nil)
	for _, chunk := range chunks {
		coupons, err := p.s.couponsOn(ctx, p.at, chunk.IDs)
		if err != nil {
			return err
		}
		if err := keepIn(ctx, p.s.store, p.b.User, coupons); err != nil {
			return err
		}
	}
	return nil
}
