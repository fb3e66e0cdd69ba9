package coupon

import (
	"context"
	"errors"

	"github.com/tallystick/tallystick/shard"
)

// Announce returns a store that calls wake after each transaction that committed,
// or may have: [Relay.Wake].
func Announce(store Store, wake func(shard.Shard)) Store { return announcing{store, wake} }

type announcing struct {
	Store
	wake func(shard.Shard)
}

func (a announcing) Write(ctx context.Context, key shard.Key, fn func(Tx) error) error {
	err := a.Store.Write(ctx, key, fn)
	if err == nil || errors.Is(err, shard.ErrUnknown) {
		a.wake(key.Bucket().Shard())
	}
	return err
}
