package migpg

import (
	"context"

	"github.com/tallystick/tallystick/migrate"
)

// Preflight implements [migrate.Preflighter].
func (s *Source) Preflight(ctx context.Context) ([]migrate.Finding, error) { return nil, nil }
