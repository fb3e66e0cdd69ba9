package migrate

import (
	"context"
	"fmt"
)

// awaited are the transactions that the Keeper waits for: those that were open
// at the token. It stays the same until they have ended, however often the wait
// is given up meanwhile: of transactions longer than stall_timeout, one that
// began since may always be open.
type awaited struct {
	due   due
	token string // "": none was taken
}

// A due is where a migration is when the Keeper waits.
type due struct {
	generation uint64
	status     Status
	phase      Phase
}

// begin forgets the token of another wait.
func (a *awaited) begin(v View) {
	if now := (due{v.Generation, v.Status, v.Phase}); a.due != now {
		*a = awaited{due: now}
	}
}

// settle returns when every transaction that is open now, or was when the wait
// was begun that was given up, has ended, so that what they wrote is visible to
// whoever reads afterwards.
func (m *Migration) settle(ctx context.Context) error {
	s, ok := m.source.(Settler)
	if !ok {
		return nil
	}
	if m.awaited.token == "" {
		token, err := s.Settled(ctx)
		if err != nil {
			return fmt.Errorf("await open transactions: %w", err)
		}
		m.awaited.token = token
	}
	if err := s.Await(ctx, m.awaited.token); err != nil {
		return fmt.Errorf("await open transactions: %w", err)
	}
	m.awaited.token = ""
	return nil
}
