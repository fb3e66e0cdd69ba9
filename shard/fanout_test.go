package shard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/shard"
)

var plenty = shard.Budget{Shards: 32, Parallel: 4, Time: time.Second}

func TestFanOutAsksEachShardOnce(t *testing.T) {
	for name, c := range map[string]struct {
		named, want []shard.Shard
	}{
		"all":   {nil, shard.All()},
		"named": {[]shard.Shard{9, 2, 5}, []shard.Shard{2, 5, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			var told string
			var shards int
			cluster, _, _ := cluster(t, shard.Options{FannedOut: func(reason string, n int, _ time.Duration) { told, shards = reason, n }})
			var mu sync.Mutex
			var asked []shard.Shard
			err := cluster.FanOut(t.Context(), "statistics", plenty, c.named, func(r *shard.Reader) error {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, r.Shard())
				return nil
			})
			slices.Sort(asked)
			if err != nil || !slices.Equal(asked, c.want) {
				t.Errorf("%v, asked %v, want %v", err, asked, c.want)
			}
			if told != "statistics" || shards != len(c.want) {
				t.Errorf("told %q, %d", told, shards)
			}
		})
	}
}

func TestFanOutBeyondItsBudgetAsksNobody(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		budget shard.Budget
	}{
		"too many shards": {"statistics", shard.Budget{Shards: 31, Time: time.Second}},
		"no time":         {"statistics", shard.Budget{Shards: 32}},
		"no reason":       {"", plenty},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _, _ := cluster(t, shard.Options{})
			err := cluster.FanOut(t.Context(), c.reason, c.budget, nil, func(*shard.Reader) error {
				t.Error("a shard is asked")
				return nil
			})
			if !errors.Is(err, shard.ErrBudget) {
				t.Error(err)
			}
		})
	}
}

func TestFanOutIsParallelWithinItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := cluster(t, shard.Options{})
		for parallel, want := range map[int]time.Duration{0: 320 * time.Millisecond, 1: 320 * time.Millisecond, 8: 40 * time.Millisecond} {
			start := time.Now()
			err := c.FanOut(t.Context(), "statistics", shard.Budget{Shards: 32, Parallel: parallel, Time: time.Second}, nil, func(*shard.Reader) error {
				time.Sleep(10 * time.Millisecond)
				return nil
			})
			if took := time.Since(start); err != nil || took != want {
				t.Errorf("%d at a time: %v, took %v, want %v", parallel, err, took, want)
			}
		}
	})
}

func TestFanOutEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, _ := cluster(t, shard.Options{})
		a.answer = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		start := time.Now()
		err := c.FanOut(t.Context(), "statistics", shard.Budget{Shards: 32, Parallel: 2, Time: 300 * time.Millisecond}, nil, ask)
		if took := time.Since(start); !errors.Is(err, shard.ErrBudget) || took != 300*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestFanOutEndsWithItsCaller(t *testing.T) {
	c, _, _ := cluster(t, shard.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.FanOut(ctx, "statistics", plenty, nil, ask); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFirstErrorEndsAFanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c, a, _ := cluster(t, shard.Options{FannedOut: func(_ string, n int, _ time.Duration) { asked = n }})
		broken := errors.New("broken")
		a.answer = func(ctx context.Context, query string) error {
			if strings.Contains(query, "thing_05") {
				return broken
			}
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
			return ctx.Err()
		}
		err := c.FanOut(t.Context(), "statistics", plenty, nil, ask)
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "statistics: shard 5: ") {
			t.Error(err)
		}
		if asked < 6 || asked > 9 {
			t.Errorf("%d were asked", asked)
		}
	})
}

// ask runs a statement on its shard.
func ask(r *shard.Reader) error {
	rows, err := r.Query(shard.SQL("SELECT n FROM thing_#"))
	if err != nil {
		return err
	}
	return rows.Close()
}
