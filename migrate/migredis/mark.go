package migredis

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tallystick/tallystick/migrate"
)

// TakeMark implements [migrate.Marks].
func (s *State) TakeMark(ctx context.Context, verifier string) (m migrate.Mark, found bool, err error) {
	reply, err := s.registered(ctx, "take mark", "takemark", args{"verifier": verifier})
	if err != nil || reply[1].(string) == "" {
		return m, false, err
	}
	if err := json.Unmarshal([]byte(reply[1].(string)), &m); err != nil {
		return migrate.Mark{}, false, fmt.Errorf("take mark: %w", err)
	}
	return m, true, nil
}

// SaveMark implements [migrate.Marks].
func (s *State) SaveMark(ctx context.Context, verifier string, m migrate.Mark) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("save mark: %w", err)
	}
	_, err = s.registered(ctx, "save mark", "savemark", args{"verifier": verifier, "mark": string(text)})
	return err
}
