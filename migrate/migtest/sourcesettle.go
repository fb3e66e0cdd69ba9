package migtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/tallystick/tallystick/migrate"
)

// sourceTransactions are those that a test has open.
type sourceTransactions struct {
	tx    sync.Mutex
	begun int
	open  map[int]chan struct{}    // closed at the end
	locks map[string]chan struct{} // by key; closed at the end
}

// Begin opens a transaction, which [Source.Await] waits for, that holds locks
// on the rows of keys, which [Source.Get] waits for. Two that hold the same
// lock are a mistake of the test.
func (t *sourceTransactions) Begin(keys ...migrate.Key) (end func()) {
	t.tx.Lock()
	defer t.tx.Unlock()
	if t.open == nil {
		t.open, t.locks = map[int]chan struct{}{}, map[string]chan struct{}{}
	}
	t.begun++
	id, ended := t.begun, make(chan struct{})
	t.open[id] = ended
	for _, k := range keys {
		t.locks[k.String()] = ended
	}
	return func() {
		t.tx.Lock()
		defer t.tx.Unlock()
		delete(t.open, id)
		maps.DeleteFunc(t.locks, func(_ string, c chan struct{}) bool { return c == ended })
		close(ended)
	}
}

// awaitLocks returns when none of keys is locked.
func (t *sourceTransactions) awaitLocks(ctx context.Context, keys []migrate.Key) error {
	for _, k := range keys {
		t.tx.Lock()
		held := t.locks[k.String()]
		t.tx.Unlock()
		if err := awaitEnd(ctx, held); err != nil {
			return err
		}
	}
	return nil
}

// awaitEnd returns when held is closed, at once if it is nil.
func awaitEnd(ctx context.Context, held chan struct{}) error {
	if held == nil {
		return nil
	}
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("migtest: a transaction is open: %w", context.Cause(ctx))
	}
}

// Settled implements [migrate.Settler].
func (s *Source) Settled(ctx context.Context) (string, error) {
	if err := s.enter(ctx, SourceSettled); err != nil {
		return "", err
	}
	s.tx.Lock()
	defer s.tx.Unlock()
	return strconv.Itoa(s.begun), nil
}

// Await implements [migrate.Settler].
func (s *Source) Await(ctx context.Context, token string) error {
	if err := s.enter(ctx, SourceAwait); err != nil {
		return err
	}
	upTo, err := strconv.Atoi(token)
	if err != nil {
		return fmt.Errorf("migtest: token %q: %w", token, err)
	}
	for _, held := range s.openAt(upTo) {
		if err := awaitEnd(ctx, held); err != nil {
			return err
		}
	}
	return nil
}

// openAt returns the open transactions up to a number.
func (t *sourceTransactions) openAt(upTo int) []chan struct{} {
	t.tx.Lock()
	defer t.tx.Unlock()
	var held []chan struct{}
	for id, c := range t.open {
		if id <= upTo {
			held = append(held, c)
		}
	}
	return held
}

// sourceOutbox is the table of notes, which is there from the first note on.
type sourceOutbox struct {
	notes sync.Mutex
	noted int64
	kept  []migrate.Left
}

// Note puts keys into the outbox.
func (o *sourceOutbox) Note(keys ...migrate.Key) {
	for _, k := range keys {
		o.Leave(migrate.Left{Key: k})
	}
}

// Leave puts notes into the outbox that say more than the key; their IDs do
// not count.
func (o *sourceOutbox) Leave(left ...migrate.Left) {
	o.notes.Lock()
	defer o.notes.Unlock()
	for _, l := range left {
		o.noted++
		l.ID = o.noted
		o.kept = append(o.kept, l)
	}
}

// Newest implements [migrate.Outbox].
func (s *Source) Newest(ctx context.Context) (id int64, none bool, err error) {
	if err := s.enter(ctx, SourcePending); err != nil {
		return 0, false, err
	}
	s.notes.Lock()
	defer s.notes.Unlock()
	if n := len(s.kept); n > 0 {
		id = s.kept[n-1].ID
	}
	return id, s.noted == 0, nil
}

// Pending implements [migrate.Outbox].
func (s *Source) Pending(ctx context.Context, limit int) (left []migrate.Left, none bool, err error) {
	if err := s.enter(ctx, SourcePending); err != nil {
		return nil, false, err
	}
	s.notes.Lock()
	defer s.notes.Unlock()
	return slices.Clone(s.kept[:min(limit, len(s.kept))]), s.noted == 0, nil
}

// Clear implements [migrate.Outbox].
func (s *Source) Clear(ctx context.Context, left []migrate.Left) error {
	if err := s.enter(ctx, SourceClear); err != nil {
		return err
	}
	s.notes.Lock()
	defer s.notes.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(l migrate.Left) bool {
		return slices.ContainsFunc(left, func(m migrate.Left) bool { return m.ID == l.ID })
	})
	return nil
}
