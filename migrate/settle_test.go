package migrate_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestTransactionsLongerThanTheStallTimeoutAreAwaited: each lasts twice as long,
// and four are open at any time.
func TestTransactionsLongerThanTheStallTimeoutAreAwaited(t *testing.T) {
	for name, pods := range map[string]int{"by one pod": 1, "by two in turn": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.fill(0, 5)
				writing, stop := context.WithCancel(t.Context())
				go func() {
					for writing.Err() == nil {
						time.AfterFunc(20*time.Minute, w.source.Begin())
						time.Sleep(5 * time.Minute)
					}
				}()
				time.Sleep(time.Hour)
				w.begin()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Hour)
				defer cancel()
				w.run(ctx, pods)
				w.pods.Wait()
				stop()
				time.Sleep(time.Hour)
				w.same()
				if err := ctx.Err(); err != nil {
					t.Errorf("report %+v", w.report())
				}
			})
		})
	}
}

// TestAStartAwaitsTransactionsSinceTheStopToo: the wait before was for older
// ones.
func TestAStartAwaitsTransactionsSinceTheStopToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 5)
		end := w.source.Begin()
		w.begin()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		w.run(ctx, 1)
		time.Sleep(time.Minute)
		if _, err := w.pod().Stop(t.Context(), true); err != nil {
			t.Error(err)
		}
		later := w.source.Begin()
		time.AfterFunc(30*time.Minute, func() { w.fill(1, 1); later() })
		end()
		w.begin()
		w.pods.Wait()
		w.same()
	})
}
