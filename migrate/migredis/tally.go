package migredis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// Wrote implements [migrate.Records].
func (s *State) Wrote(ctx context.Context) error {
	_, err := s.registered(ctx, "wrote", "wrote", nil)
	return err
}

// Tally implements [migrate.Records].
func (s *State) Tally(ctx context.Context) (t migrate.Tally, err error) {
	reply, err := s.call(ctx, "tally", "tally", nil)
	if err != nil {
		return t, err
	}
	if ms, parsed := strconv.ParseInt(reply[1].(string), 10, 64); parsed == nil {
		t.Wrote = time.UnixMilli(ms)
	}
	if t.Cleared, err = strconv.ParseInt(reply[2].(string), 10, 64); err != nil {
		return t, fmt.Errorf("tally: %w", err)
	}
	t.Aside = reply[3].(int64)
	return t, nil
}
