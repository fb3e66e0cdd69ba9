package shard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/shard"
)

var touch = shard.SQL("UPDATE thing_# SET n = n + 1 WHERE id = ?")

// cluster makes one of a database a, which has all shards, and b.
func cluster(t *testing.T, o shard.Options) (c *shard.Cluster, a, b *fake) {
	t.Helper()
	a, b = newFake(t), newFake(t)
	clear(b.epochs)
	m, err := shard.Spread("a")
	if err != nil {
		t.Fatal(err)
	}
	c, err = shard.New(m, map[string]shard.Database{"a": a, "b": b}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c, a, b
}

// moved returns the map with a shard on b, a version and an epoch later.
func moved(m shard.Map, s shard.Shard) shard.Map {
	m.Version++
	m.Shards[s] = shard.Place{Database: "b", Epoch: m.Shards[s].Epoch + 1}
	return m
}

func write(ctx context.Context, c *shard.Cluster, key shard.Key) error {
	return c.Write(ctx, key, func(tx *shard.Tx) error {
		_, err := tx.Exec(touch, 1)
		return err
	})
}

func TestWriteRunsOnTheShardOfItsKeyByTheDatabasesClock(t *testing.T) {
	c, a, _ := cluster(t, shard.Options{})
	err := c.Write(t.Context(), shard.ID(1024+17), func(tx *shard.Tx) error {
		if tx.Shard() != 17 || tx.Dialect() != shard.SQLite {
			t.Errorf("shard %d, dialect %q", tx.Shard(), tx.Dialect())
		}
		if want := time.UnixMilli(now).UTC(); tx.Now() != want {
			t.Errorf("now %v, want %v", tx.Now(), want)
		}
		n, err := tx.Exec(touch, 1)
		if n != 1 {
			t.Errorf("%d rows", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.statements(), []string{"UPDATE thing_17 SET n = n + 1 WHERE id = ?"}; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

func TestErrorOfAFunctionRollsBackAndComesBack(t *testing.T) {
	c, a, _ := cluster(t, shard.Options{})
	mine := errors.New("mine")
	if err := c.Write(t.Context(), shard.ID(1), func(*shard.Tx) error { return mine }); !errors.Is(err, mine) {
		t.Error(err)
	}
	if a.committed != 0 || a.rolledBack != 1 {
		t.Errorf("%d committed, %d rolled back", a.committed, a.rolledBack)
	}
}

func TestWriteFollowsAShardThatMoved(t *testing.T) {
	var c *shard.Cluster
	reloads := 0
	c, a, b := cluster(t, shard.Options{Reload: func(context.Context) (shard.Map, error) {
		reloads++
		return moved(c.Map(), 3), nil
	}})
	a.moveTo(b, 3, 2)
	if err := write(t.Context(), c, shard.Shard(3)); err != nil {
		t.Fatal(err)
	}
	if len(a.statements()) != 0 || len(b.statements()) != 1 || reloads != 1 {
		t.Errorf("a was asked %q, b %q, %d reloads", a.statements(), b.statements(), reloads)
	}
	if err := write(t.Context(), c, shard.Shard(3)); err != nil || reloads != 1 {
		t.Errorf("the next write: %v, %d reloads", err, reloads)
	}
}

func TestReadFollowsAShardWhoseTablesMoved(t *testing.T) {
	var c *shard.Cluster
	c, a, b := cluster(t, shard.Options{Reload: func(context.Context) (shard.Map, error) { return moved(c.Map(), 3), nil }})
	a.answer = func(context.Context, string) error { return shard.ErrMoved }
	err := c.Read(t.Context(), shard.Shard(3), func(r *shard.Reader) error {
		rows, err := r.Query(shard.SQL("SELECT n FROM thing_#"))
		if err != nil {
			return err
		}
		return rows.Close()
	})
	if err != nil || len(b.statements()) != 1 {
		t.Errorf("%v, b was asked %q", err, b.statements())
	}
}

func TestWriteWaitsForAMoveUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *shard.Cluster
		var done atomic.Bool
		c, a, b := cluster(t, shard.Options{Reload: func(context.Context) (shard.Map, error) {
			if done.Load() {
				return moved(c.Map(), 3), nil
			}
			return c.Map(), nil
		}})
		a.moveTo(b, 3, 2)
		time.AfterFunc(700*time.Millisecond, func() { done.Store(true) })
		start := time.Now()
		if err := write(t.Context(), c, shard.Shard(3)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 700*time.Millisecond || took > 800*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestWriteGivesUpOnAMoveThatLasts(t *testing.T) {
	for name, end := range map[string]struct{ moveWait, context time.Duration }{ // not at the same moment: either may come first
		"after MoveWait":   {500 * time.Millisecond, time.Second},
		"with its context": {time.Second, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c *shard.Cluster
				c, a, b := cluster(t, shard.Options{
					MoveWait: end.moveWait,
					Reload:   func(context.Context) (shard.Map, error) { return c.Map(), nil },
				})
				a.moveTo(b, 3, 2)
				ctx, cancel := context.WithTimeout(t.Context(), end.context)
				defer cancel()
				start := time.Now()
				if err := write(ctx, c, shard.Shard(3)); !errors.Is(err, shard.ErrMoved) {
					t.Error(err)
				}
				if took := time.Since(start); took != 500*time.Millisecond {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestWriteOfAMovedShardFails(t *testing.T) {
	lost := errors.New("control database away")
	for name, c := range map[string]struct {
		reload func(context.Context) (shard.Map, error)
		also   string
	}{
		"without a reload":              {nil, "shard 3"},
		"when the map cannot be read":   {func(context.Context) (shard.Map, error) { return shard.Map{}, lost }, "control database away"},
		"to a database not configured":  {func(context.Context) (shard.Map, error) { return elsewhere(), nil }, `"c", which is not configured`},
		"when the map that came is bad": {func(context.Context) (shard.Map, error) { return shard.Map{}, nil }, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, a, b := cluster(t, shard.Options{Reload: c.reload})
			a.moveTo(b, 3, 2)
			err := write(t.Context(), cluster, shard.Shard(3))
			if !errors.Is(err, shard.ErrMoved) || !strings.Contains(err.Error(), c.also) {
				t.Errorf("%v, want ErrMoved and %q", err, c.also)
			}
		})
	}
}

func elsewhere() shard.Map {
	m, _ := shard.Spread("c")
	m.Version = 9
	return m
}

func TestWritesThatMeetAMoveTogetherShareOneReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *shard.Cluster
		var reloads atomic.Int32
		c, a, b := cluster(t, shard.Options{Reload: func(context.Context) (shard.Map, error) {
			reloads.Add(1)
			time.Sleep(10 * time.Millisecond)
			return moved(c.Map(), 3), nil
		}})
		a.moveTo(b, 3, 2)
		var writers sync.WaitGroup
		for range 100 {
			writers.Go(func() {
				if err := write(t.Context(), c, shard.Shard(3)); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		if n := reloads.Load(); n != 1 {
			t.Errorf("%d reloads", n)
		}
	})
}

func TestSetMapTakesOnlyNewerOnes(t *testing.T) {
	c, _, _ := cluster(t, shard.Options{})
	first := c.Map()
	second := moved(first, 1)
	third := moved(second, 2)
	for _, m := range []shard.Map{third, second, first} {
		if err := c.SetMap(m); err != nil {
			t.Fatal(err)
		}
		if got := c.Map(); got != third {
			t.Fatalf("after version %d the map has version %d", m.Version, got.Version)
		}
	}
	if err := c.SetMap(elsewhere()); err == nil || c.Map() != third {
		t.Errorf("a map with an unknown database: %v, version %d", err, c.Map().Version)
	}
}

func TestACallIsBoundedByItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, _ := cluster(t, shard.Options{Timeout: 300 * time.Millisecond})
		a.answer = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		start := time.Now()
		if err := write(t.Context(), c, shard.ID(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestRouteIsTheShardOfTheCallAndOfNothingElse(t *testing.T) {
	c, a, _ := cluster(t, shard.Options{})
	var got shard.Shard
	var routed bool
	a.answer = func(ctx context.Context, _ string) error {
		got, routed = shard.Route(ctx)
		return nil
	}
	if err := write(t.Context(), c, shard.ID(9)); err != nil || !routed || got != 9 {
		t.Errorf("%v, shard %d, %v", err, got, routed)
	}
	if _, routed := shard.Route(t.Context()); routed {
		t.Error("a context of nobody is routed")
	}
}

func TestSameIsByShard(t *testing.T) {
	if !shard.Same(shard.ID(5), shard.ID(1024*7+32+5)) || shard.Same(shard.ID(5), shard.ID(6)) {
		t.Error("wrong")
	}
}

func TestAStatementNamesTheTablesOfItsShard(t *testing.T) {
	s := shard.SQL("INSERT INTO a_# SELECT * FROM b_#")
	if got, want := s.On(7), "INSERT INTO a_07 SELECT * FROM b_07"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a statement without # is accepted")
		}
	}()
	shard.SQL("SELECT * FROM campaign")
}
