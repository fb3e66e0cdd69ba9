package coupon

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/shard"
)

// awayStore is a store none of whose shards answers.
type awayStore struct{ Store }

func (awayStore) Read(context.Context, shard.Key, func(Rows) error) error {
	return shard.ErrUnavailable
}

func TestSilentShardIsNamed(t *testing.T) {
	h := &healthyStore{Store: awayStore{}}
	at := shard.Shard(17)
	err := h.Read(t.Context(), at, nil)
	if !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), "shard 17") {
		t.Errorf("%v, want the number of the shard", err)
	}
	if !h.isSilent(at) || h.isSilent(at+1) {
		t.Error("it is not noted")
	}
}
