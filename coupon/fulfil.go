package coupon

import (
	"context"

	"github.com/tallystick/tallystick/shard"
)

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
	err = eachShard(ctx, b.atOnce(), func(ctx context.Context, at shard.Shard) (err error) {
		if b.Quota[at] > 0 {
			short[at], err = portion{s, c, b, at}.fulfil(ctx, done)
		}
		return err
	})
	return short, err
}

// atOnce returns on how many shards at a time the batch is issued: one if it takes
// long. With two of them a database server of two processors had none for others for
// a quarter of the time, and 1 in 100 of their calls took twice as long.
func (b Batch) atOnce() int {
	if b.Count > issueAtOnce {
		return 1
	}
	return shardsAtOnce
}
