package board

import (
	"context"

	"github.com/tallystick/tallystick/migrate"
)

// A mark is how far the verification under way has come, and whose it is.
type mark struct {
	Verifier string        `json:"verifier"`
	Mark     *migrate.Mark `json:"mark"` // nil: nothing was saved
}

// TakeMark implements [migrate.Marks].
func (s *State) TakeMark(ctx context.Context, verifier string) (m migrate.Mark, found bool, err error) {
	if err := s.open(); err != nil {
		return m, false, wrap("take mark", err)
	}
	err = s.update(ctx, "take mark", func(b *board) error {
		var now mark
		if err := b.get(keyMark, &now); err != nil {
			return err
		}
		if found = now.Mark != nil; found {
			m = *now.Mark
		}
		now.Verifier = verifier
		return b.put(keyMark, now)
	})
	return m, found && err == nil, err
}

// SaveMark implements [migrate.Marks].
func (s *State) SaveMark(ctx context.Context, verifier string, m migrate.Mark) error {
	if err := s.open(); err != nil {
		return wrap("save mark", err)
	}
	return s.update(ctx, "save mark", func(b *board) error {
		if is, err := b.marks(verifier); err != nil || !is {
			return firstOf(err, migrate.ErrNotHeld)
		}
		return b.put(keyMark, mark{verifier, &m})
	})
}

// marks reports whether the mark is verifier's.
func (b *board) marks(verifier string) (bool, error) {
	var now mark
	err := b.get(keyMark, &now)
	return b.tx.Get(keyMark) != nil && now.Verifier == verifier, err
}

// dropMark removes the mark if it is verifier's.
func (b *board) dropMark(verifier string) error {
	is, err := b.marks(verifier)
	if is {
		b.tx.Delete(keyMark)
	}
	return err
}
