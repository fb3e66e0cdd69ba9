package board

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/tallystick/tallystick/migrate"
)

var _ migrate.State = (*State)(nil)

// A State is a [migrate.State] over a store. It is what one pod sees of it.
type State struct {
	store Store
	axis  migrate.Axis

	mu    sync.Mutex
	run   string // that this pod belongs to; "": it is not open
	epoch uint64 // the greatest it has seen
}

// New returns a state over store that names slots by axis.
func New(store Store, axis migrate.Axis) *State { return &State{store: store, axis: axis} }

// Pod returns the same state as another pod sees it.
func (s *State) Pod() *State { return New(s.store, s.axis) }

// Close implements [migrate.State].
func (s *State) Close() error { return s.store.Close() }

// update does a change, unless the state is lost.
func (s *State) update(ctx context.Context, op string, f func(*board) error) error {
	now, err := s.commit(ctx, f)
	if err == nil {
		s.note(now)
	}
	return wrap(op, err)
}

// join does a change after which this pod belongs to what is there. Until it is
// committed it does not: another call would look for what nobody else sees yet.
func (s *State) join(ctx context.Context, op string, f func(*board) error) error {
	now, err := s.commit(ctx, f)
	if err == nil {
		s.belong(now)
	}
	return wrap(op, err)
}

// commit does a change and returns what it has left, unless the state is lost.
func (s *State) commit(ctx context.Context, f func(*board) error) (now sight, err error) {
	was := s.seen()
	err = s.store.Update(ctx, func(tx Tx) error {
		return with(tx, was, func(b *board) error {
			if err := f(b); err != nil {
				return err
			}
			now = sight{b.header.Run, b.header.Epoch}
			return b.put(keyHeader, b.header)
		})
	})
	return now, err
}

// view reads, unless the state is lost.
func (s *State) view(ctx context.Context, op string, f func(*board) error) error {
	was := s.seen() // before the transaction: it may not see what is committed meanwhile
	return wrap(op, s.store.View(ctx, func(tx Tx) error { return with(tx, was, f) }))
}

func wrap(op string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// A sight is what a pod has seen of the state: its run, "" if it is not open,
// and its greatest epoch.
type sight struct {
	run   string
	epoch uint64
}

func with(tx Tx, was sight, f func(*board) error) error {
	b, err := load(tx)
	if err != nil {
		return err
	}
	if was.run != "" && (b.header.Run != was.run || b.header.Epoch < was.epoch) {
		return migrate.ErrStateLost // what this pod knows of is not there any more
	}
	return f(b)
}

func (s *State) seen() sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sight{s.run, s.epoch}
}

// note keeps what an update has committed.
func (s *State) note(now sight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == now.run {
		s.epoch = max(s.epoch, now.epoch)
	}
}

func (s *State) belong(now sight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.epoch = now.run, now.epoch
}

// open fails unless this pod is registered.
func (s *State) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == "" {
		return fmt.Errorf("the state is not open: %w", migrate.ErrWrongStatus)
	}
	return nil
}

// Open implements [migrate.State].
func (s *State) Open(ctx context.Context, plan migrate.PlanRecord) error {
	return s.join(ctx, "open", func(b *board) error {
		if b.header.Run == "" {
			b.header.Run, b.plan = rand.Text(), plan
			b.header.Epoch++
		}
		if b.plan.Hash != plan.Hash {
			return &migrate.OtherPlanError{Theirs: b.plan, Ours: plan}
		}
		return b.put(keyPlan, b.plan)
	})
}

// Reset implements [migrate.State]. The epoch stays, so that no claim from
// before can be one from after.
func (s *State) Reset(ctx context.Context) error {
	return s.join(ctx, "reset", func(b *board) error {
		if n, err := b.live(); err != nil || n > 0 {
			return firstOf(err, fmt.Errorf("%d slots are being worked on: %w", n, migrate.ErrWrongStatus))
		}
		var keys []string
		b.tx.Each("", "", func(key string, _ []byte) bool {
			keys = append(keys, key)
			return true
		})
		for _, key := range keys {
			b.tx.Delete(key)
		}
		b.header = header{Epoch: b.header.Epoch + 1, Status: migrate.NotStarted, Phase: migrate.PhaseCopy}
		return nil
	})
}

// Evict ends all claims and the Keeper's term, for a store of which it is known
// that nobody else uses it.
func (s *State) Evict(ctx context.Context) error {
	return s.update(ctx, "evict", func(b *board) error {
		all, err := b.entries()
		if err != nil {
			return err
		}
		b.header.Keeper = keeper{}
		for _, e := range all {
			e.Holder = holder{}
			if e.empty(b.now) {
				b.tx.Delete(e.key())
			} else if err := b.put(e.key(), e); err != nil {
				return err
			}
		}
		return nil
	})
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
