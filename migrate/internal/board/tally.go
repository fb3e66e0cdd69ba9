package board

import (
	"context"

	"github.com/tallystick/tallystick/migrate"
)

// Wrote implements [migrate.Records].
func (s *State) Wrote(ctx context.Context) error {
	if err := s.open(); err != nil {
		return wrap("wrote", err)
	}
	return s.update(ctx, "wrote", func(b *board) error {
		b.header.Wrote = b.now
		return nil
	})
}

// Tally implements [migrate.Records].
func (s *State) Tally(ctx context.Context) (t migrate.Tally, err error) {
	err = s.view(ctx, "tally", func(b *board) error {
		t = migrate.Tally{Wrote: b.header.Wrote, Cleared: b.header.Cleared}
		b.tx.Each(quarantine, quarantine, func(string, []byte) bool {
			t.Aside++
			return true
		})
		return nil
	})
	return t, err
}
