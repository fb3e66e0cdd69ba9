package coupon

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// How coupons are generated. With its chunk and its message a transaction changes
// 500 rows: more are slower and lock longer.
const (
	chunkSize    = 498 // coupons a transaction
	shardsAtOnce = 8   // shards used at the same time by what is short
	longAtOnce   = 2   // and by generation, which takes long: calls pass between
	chunkTries   = 5   // with new ids and codes, when one was there already
	chunkPeriod  = 50 * time.Millisecond
)

// counter counts what is done, from several goroutines.
type counter struct{ n atomic.Int64 }

// Generate begins to make a campaign's coupons and returns the work under way,
// the same as long as it is. Asked for later it finds nothing to do. While this
// process can make no id it is refused as [ErrShardUnavailable]: ask again.
func (s *Service) Generate(ctx context.Context, campaign int64) (Operation, error) {
	c, err := s.Campaign(ctx, campaign)
	if err == nil && !c.Closed() {
		_, err = s.ids.Mint(0) // there are more than enough
	}
	if err != nil {
		return Operation{}, s.refusal(err)
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
	if err := s.generateChunks(ctx, c, done); err != nil {
		return err
	}
	s.reach(StepGenerateChunked, nil)
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

// generateChunks makes the chunks that are not there, the same chunk of all shards
// at a time, from ids that were made in rounds over the shards. After each chunk it
// leaves the database to others for as long as that took.
func (s *Service) generateChunks(ctx context.Context, c Campaign, done *counter) error {
	quota := spread(c.Total)
	var have [shard.Count]map[int]bool
	err := eachShard(ctx, shardsAtOnce, func(ctx context.Context, at shard.Shard) error {
		there, err := s.chunks(ctx, at, BatchKey{Campaign: c.ID})
		have[at] = numbersOf(there)
		return err
	})
	rounds := NewRounds(nil)
	for k := 0; err == nil && int64(k)*chunkSize < slices.Max(quota[:]); k++ {
		var size, missing [shard.Count]int
		for at := range size {
			size[at] = int(max(0, min(chunkSize, quota[at]-int64(k)*chunkSize)))
			if !have[at][k] {
				missing[at] = size[at]
			}
		}
		var coupons [shard.Count][]Coupon
		if coupons, err = s.mint(c, rounds, missing); err != nil {
			return err
		}
		err = eachShard(ctx, longAtOnce, func(ctx context.Context, at shard.Shard) error {
			begin := time.Now()
			if err := s.addChunk(ctx, c, at, k, coupons[at]); err != nil {
				return err
			}
			done.n.Add(int64(size[at]))
			s.reach(StepGenerateChunk, nil)
			wait(ctx, time.Since(begin))
			return nil
		})
	}
	return err
}

// chunks returns the chunks of a batch that a shard has.
func (s *Service) chunks(ctx context.Context, at shard.Shard, key BatchKey) (there []Chunk, err error) {
	err = s.store.Read(ctx, at, func(rows Rows) (err error) {
		there, err = rows.Chunks(key.Campaign, key.Number)
		return err
	})
	return there, err
}

// numbersOf returns the numbers of chunks.
func numbersOf(chunks []Chunk) map[int]bool {
	numbers := make(map[int]bool, len(chunks))
	for _, c := range chunks {
		numbers[c.Chunk] = true
	}
	return numbers
}

// addChunk adds a chunk of coupons, or others in their place where an id or a
// code was there already. Of no coupons it is there already.
func (s *Service) addChunk(ctx context.Context, c Campaign, at shard.Shard, k int, coupons []Coupon) error {
	for try := 1; len(coupons) > 0; try++ {
		err := s.store.Write(ctx, at, func(tx Tx) error {
			fresh, err := tx.PutChunk(Chunk{BatchKey: BatchKey{Campaign: c.ID}, Shard: at, Chunk: k})
			if err != nil || !fresh {
				return err
			}
			return tx.Add(coupons)
		})
		again := errors.Is(err, shard.ErrDuplicate) || errors.Is(err, shard.ErrUnknown) || errors.Is(err, shard.ErrBusy)
		if err == nil || !again || try == chunkTries {
			return err
		}
		s.log.Info("chunk made anew", "campaign", c.ID, "shard", at, "chunk", k, "error", err)
		wait(ctx, chunkPeriod)
		var n [shard.Count]int
		n[at] = len(coupons)
		anew, err := s.mint(c, NewRounds(nil), n)
		if err != nil {
			return err
		}
		coupons = anew[at]
	}
	return nil
}

// mint returns n new coupons for each shard, by rounds.
func (s *Service) mint(c Campaign, rounds *Rounds, n [shard.Count]int) (coupons [shard.Count][]Coupon, err error) {
	left := 0
	for _, some := range n {
		left += some
	}
	for left > 0 {
		bucket := rounds.Next()
		at := bucket.Shard()
		if len(coupons[at]) == n[at] {
			continue
		}
		id, err := s.ids.Mint(bucket)
		if err != nil {
			return coupons, fmt.Errorf("coupons of campaign %d: %w", c.ID, err)
		}
		fresh := c.stock(Ref{id, s.codes.New(at)})
		fresh.Created = milli(time.Now())
		fresh.Updated = fresh.Created
		coupons[at] = append(coupons[at], fresh)
		left--
	}
	return coupons, nil
}

// eachShard runs fn for every shard, several at a time, which are far apart: at
// first neighbours are in one database. The first failure ends it.
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
	for i := range shard.Count {
		select {
		case next <- apart(i):
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// apart returns the shards in an order in which any 2, 4, 8 or 16 in a row, from a
// multiple on, are as far from each other as they can be: 0, 16, 8, 24, 4 and so on.
func apart(i int) shard.Shard { return shard.Shard(bits.Reverse8(uint8(i)) >> 3) }
