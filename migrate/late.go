package migrate

import (
	"context"
	"sync"
	"time"
)

// signatureLife is how long AWS accepts a signed request: a put that was sent
// before a claim ended may land that much later and must find the tombstone.
const signatureLife = 20 * time.Minute

// writeNote is how long a record of writes that need no claim speaks for those
// after it.
const writeNote = 10 * time.Second

// writes records in the state when a drain, a replay or a repair wrote last: no
// slot of the ledger tells. The zero value is ready.
type writes struct {
	mu    sync.Mutex
	noted time.Time
}

// note records a write that is about to be sent, or was just answered, unless
// one was recorded shortly before.
func (w *writes) note(ctx context.Context, s State) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.noted.IsZero() && time.Since(w.noted) < writeNote {
		return nil
	}
	if err := s.Wrote(ctx); err != nil {
		return err
	}
	w.noted = time.Now()
	return nil
}

// writing does a write that needs no claim. It is recorded before, so that one
// whose process dies counts, and after it, so that one that lasts long does.
func (m *Migration) writing(ctx context.Context, write func() (Result, error)) (Result, error) {
	if err := m.writes.note(ctx, m.state); err != nil {
		return Result{}, err
	}
	r, err := write()
	if err == nil {
		err = m.writes.note(ctx, m.state)
	}
	return r, err
}

// quietFor returns how long has to be waited until no request can land any more
// that a worker, a drain, a replay or a repair has sent.
func (m *Migration) quietFor(ctx context.Context, now time.Time) (time.Duration, error) {
	last, err := m.lastFinish(ctx)
	if err != nil {
		return 0, err
	}
	t, err := m.state.Tally(ctx)
	if err != nil {
		return 0, err
	}
	if !t.Wrote.IsZero() && t.Wrote.Add(writeNote).After(last) {
		last = t.Wrote.Add(writeNote)
	}
	return last.Add(signatureLife).Sub(now), nil
}
