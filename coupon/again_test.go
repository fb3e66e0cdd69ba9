package coupon

import (
	"context"
	"errors"
	"testing"

	"github.com/tallystick/tallystick/shard"
)

// A scriptedStore ends each write with the next of its errors, and again with the
// last one.
type scriptedStore struct {
	Store // for what is not asked
	ends  []error
	calls int
}

func (s *scriptedStore) Write(context.Context, shard.Key, func(Tx) error) error {
	s.calls++
	return s.ends[min(s.calls, len(s.ends))-1]
}

// TestWritesAreMadeAgain where another was faster and where a reply was lost, and not
// for ever.
func TestWritesAreMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		ends  []error
		want  error
		calls int
	}{
		"it succeeds":            {[]error{nil}, nil, 1},
		"another was faster":     {[]error{shard.ErrNoMatch, nil}, nil, 2},
		"always":                 {[]error{shard.ErrNoMatch}, ErrInProgress, raceLimit},
		"the reply was lost":     {[]error{shard.ErrUnknown, nil}, nil, 2},
		"each time":              {[]error{shard.ErrUnknown}, shard.ErrUnknown, 1 + unknownLimit},
		"both":                   {[]error{shard.ErrUnknown, shard.ErrNoMatch, shard.ErrUnknown, nil}, nil, 4},
		"anything else is final": {[]error{shard.ErrBusy}, shard.ErrBusy, 1},
	} {
		store := &scriptedStore{ends: c.ends}
		err := (&Service{store: &healthyStore{Store: store}}).writeAgain(t.Context(), shard.Shard(3), nil)
		if !errors.Is(err, c.want) || store.calls != c.calls {
			t.Errorf("%s: %v after %d calls, want %v after %d", name, err, store.calls, c.want, c.calls)
		}
	}
}
