package coupon

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// How coupons are generated.
const (
	chunkSize   = 500 // coupons a transaction: more are slower and lock longer
	generators  = 8   // shards written at the same time
	chunkTries  = 5   // with new ids and codes, when one was there already
	chunkPeriod = 50 * time.Millisecond
)

// counter counts what is done, from several goroutines.
type counter struct{ n atomic.Int64 }

// Generate begins to make a campaign's coupons and returns the work under way,
// which is the same each time it is asked for.
func (s *Service) Generate(ctx context.Context, campaign int64) (Operation, error) {
	c, err := s.Campaign(ctx, campaign)
	if err != nil {
		return Operation{}, err
	}
	return s.start(ctx, Operation{
		Kind: Generating, Subject: strconv.FormatInt(c.ID, 10), Campaign: c.ID, Total: c.Total,
	})
}

// generate makes what is missing of a campaign's coupons, the same number on
// each shard, and closes generation. Each transaction adds a chunk of coupons
// and its number, so that a process that goes on after another died makes
// exactly those that are not there:
//
//	died before a chunk's commit: the chunk is not there and is made anew
//	after it:                     the chunk is there and is passed over
//	after the last:               generation is closed by whoever goes on
func (s *Service) generate(ctx context.Context, campaign int64, done *counter) error {
	c, err := s.Campaign(ctx, campaign)
	if err != nil {
		return err
	}
	quota := spread(c.Total)
	err = eachShard(ctx, generators, func(ctx context.Context, at shard.Shard) error {
		return s.generateOn(ctx, c, at, quota[at], done)
	})
	if err != nil {
		return err
	}
	_, err = s.update(ctx, campaign, func(c Campaign) (Campaign, error) {
		if !c.Closed() {
			c.Generated = c.Total
			c.Version++
		}
		return c, nil
	})
	return err
}

// spread shares n out over the shards, evenly to one; which shards get one more
// is up to n, so that small campaigns do not all prefer the same.
func spread(n int64) (quota [shard.Count]int64) {
	for i := range quota {
		quota[(int64(i)+n)%shard.Count] = (n + int64(i)) / shard.Count
	}
	return quota
}

// generateOn makes the chunks that a shard does not have yet.
func (s *Service) generateOn(ctx context.Context, c Campaign, at shard.Shard, quota int64, done *counter) error {
	have, err := s.chunks(ctx, at, BatchKey{Campaign: c.ID})
	if err != nil {
		return err
	}
	for k := 0; int64(k)*chunkSize < quota; k++ {
		n := min(chunkSize, quota-int64(k)*chunkSize)
		if !have[k] {
			if err := s.generateChunk(ctx, c, at, k, int(n)); err != nil {
				return err
			}
		}
		done.n.Add(n)
	}
	return nil
}

// chunks returns the numbers of the chunks of a batch that a shard has.
func (s *Service) chunks(ctx context.Context, at shard.Shard, key BatchKey) (map[int]bool, error) {
	var there []Chunk
	err := s.store.Read(ctx, at, func(rows Rows) (err error) {
		there, err = rows.Chunks(key.Campaign, key.Number)
		return err
	})
	have := make(map[int]bool, len(there))
	for _, c := range there {
		have[c.Chunk] = true
	}
	return have, err
}

func (s *Service) generateChunk(ctx context.Context, c Campaign, at shard.Shard, k, n int) error {
	for try := 1; ; try++ {
		coupons, err := s.mint(c, at, n)
		if err == nil {
			err = s.store.Write(ctx, at, func(tx Tx) error {
				fresh, err := tx.PutChunk(Chunk{BatchKey: BatchKey{Campaign: c.ID}, Shard: at, Chunk: k})
				if err != nil || !fresh {
					return err
				}
				return tx.Add(coupons)
			})
		}
		again := errors.Is(err, shard.ErrDuplicate) || errors.Is(err, shard.ErrUnknown) || errors.Is(err, shard.ErrBusy)
		if err == nil || !again || try == chunkTries {
			return err
		}
		s.log.Info("chunk made anew", "campaign", c.ID, "shard", at, "chunk", k, "error", err)
		wait(ctx, chunkPeriod)
	}
}

// mint returns n new coupons for a shard. They use its 32 buckets evenly.
func (s *Service) mint(c Campaign, at shard.Shard, n int) ([]Coupon, error) {
	coupons := make([]Coupon, 0, n)
	for len(coupons) < n {
		for _, upper := range rand.Perm(shard.Buckets / shard.Count)[:min(n-len(coupons), shard.Buckets/shard.Count)] {
			id, err := s.ids.Mint(shard.Bucket(upper*shard.Count) + at.Bucket())
			if err != nil {
				return nil, fmt.Errorf("coupons of campaign %d: %w", c.ID, err)
			}
			coupon := c.stock(Ref{id, s.codes.New(at)})
			coupon.Created = milli(time.Now())
			coupon.Updated = coupon.Created
			coupons = append(coupons, coupon)
		}
	}
	return coupons, nil
}

// eachShard runs fn for every shard, several at a time. The first failure ends
// it.
func eachShard(ctx context.Context, parallel int, fn func(context.Context, shard.Shard) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	next := make(chan shard.Shard)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for at := range next {
				if err := fn(ctx, at); err != nil {
					fail(err)
				}
			}
		})
	}
	for _, at := range shard.All() {
		select {
		case next <- at:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}
