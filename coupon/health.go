package coupon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tallystick/tallystick/shard"
)

// A healthyStore is a store that knows which shards did not answer when they were
// last asked. It is safe for concurrent use.
type healthyStore struct {
	Store
	silent [shard.Count]atomic.Bool
}

// isSilent reports whether the last call of a shard was not answered.
func (h *healthyStore) isSilent(s shard.Shard) bool { return h.silent[s].Load() }

func (h *healthyStore) Write(ctx context.Context, key shard.Key, fn func(Tx) error) error {
	return h.note(key, h.Store.Write(ctx, key, fn))
}

func (h *healthyStore) Read(ctx context.Context, key shard.Key, fn func(Rows) error) error {
	return h.note(key, h.Store.Read(ctx, key, fn))
}

func (h *healthyStore) note(key shard.Key, err error) error {
	at, silent := key.Bucket().Shard(), errors.Is(err, shard.ErrUnavailable)
	if h.silent[at].Load() != silent {
		h.silent[at].Store(silent)
	}
	if silent {
		err = fmt.Errorf("shard %d: %w", at, err) // for the log
	}
	return err
}
