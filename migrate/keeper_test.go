package migrate_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// finishes runs pods until the migration is finished, and fails once they have
// taken limit.
func (w *world) finishes(ctx context.Context, limit time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w.begin()
	w.run(ctx, 2)
	w.pods.Wait()
	if r := w.report(); r.Status != migrate.Finished {
		w.t.Errorf("after %v it is %s, in phase %s", limit, r.Status, r.Phase)
	}
}

// TestOutboxIsDrainedThoughItTakesLong: one batch of notes takes longer than
// the Keeper's lock lives.
func TestOutboxIsDrainedThoughItTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.sink.Latency = 100 * time.Millisecond
		w.fill(0, 500)
		for _, r := range w.source.All() {
			w.source.Note(r.Key)
		}
		w.finishes(t.Context(), 10*time.Minute)
		w.same()
	})
}

// TestLongTransactionsAreAwaited: one that is longer than the Keeper's lock
// lives is open at any time.
func TestLongTransactionsAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 100)
		ctx, stop := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		writing.Go(func() {
			for ctx.Err() == nil {
				time.AfterFunc(time.Minute, w.source.Begin())
				time.Sleep(20 * time.Second)
			}
		})
		time.Sleep(time.Second)
		w.finishes(t.Context(), 10*time.Minute)
		stop()
		writing.Wait()
		w.same()
	})
}

// TestStopDoesNotWaitForTransactions: the Keeper awaits one when everything is
// to stop.
func TestStopDoesNotWaitForTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 100)
		end := w.source.Begin()
		w.begin()
		ctx, stop := context.WithCancel(t.Context())
		w.run(ctx, 2)
		time.Sleep(time.Minute)
		wait, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		if s, err := w.pod().Stop(wait, true); s != migrate.Stopped {
			t.Errorf("stop: %s, %v", s, err)
		}
		end()
		w.begin()
		time.Sleep(time.Minute)
		stop()
		w.pods.Wait()
		if r := w.report(); r.Status != migrate.Finished || r.Generation != 2 {
			t.Errorf("after start it is %s in generation %d", r.Status, r.Generation)
		}
	})
}

// A hanging is a source of which a pod gets no answer about transactions.
type hanging struct{ *migtest.Source }

func (hanging) Await(ctx context.Context, _ string) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestKeeperThatGetsNoFurtherGivesUp: another pod, whose database answers,
// takes its place.
func TestKeeperThatGetsNoFurtherGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 100)
		w.begin()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
		defer cancel()
		w.pods.Go(func() {
			if err := migrate.New(w.plan, hanging{w.source}, w.sink, w.state.Pod(), migrate.Options{}).Run(ctx); err != nil {
				t.Errorf("pod: %v", err)
			}
		})
		time.Sleep(time.Minute) // it leads
		w.run(ctx, 1)
		w.pods.Wait()
		if r := w.report(); r.Status != migrate.Finished {
			t.Errorf("it is %s, in phase %s", r.Status, r.Phase)
		}
	})
}
