package migtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

func TestSourceInMemory(t *testing.T) {
	migtest.TestSource(t, func(t *testing.T, table migtest.SourceTable) (migrate.Source, func(...migrate.Row)) {
		s := migtest.NewSource(table.Axis, table.Oldest)
		return s, func(rows ...migrate.Row) {
			s.Put(rows[1:]...)
			s.Put(rows[0])
			s.Put(rows[0], rows[1])
		}
	})
}

func numbered(key string, version int64) migrate.Row {
	return migrate.Row{Key: migrate.Key{key}, Version: version}
}

func TestSourcePutReplaces(t *testing.T) {
	s := migtest.NewSource(migrate.Axis{By: migrate.ByInteger, Width: 10}, true)
	s.Put(numbered("10", 1), numbered("9", 1), numbered("10", 2))
	s.Put(numbered("9", 2))
	s.Put(numbered("-1", 2))
	s.Delete(migrate.Key{"10"}, migrate.Key{"11"})
	all := s.All()
	if len(all) != 2 || all[0].Key[0] != "-1" || all[1].Key[0] != "9" || all[1].Version != 2 {
		t.Errorf("%v", all)
	}
}

func TestSourceAwaitsTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := migtest.NewSource(migrate.Axis{By: migrate.ByInteger, Width: 10}, true)
		s.Put(numbered("1", 1))
		end := s.Begin(migrate.Key{"1"})
		token, _ := s.Settled(t.Context())
		defer s.Begin()()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Await(ctx, token); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("await returned %v", err)
		}
		time.AfterFunc(time.Hour, end)
		start := time.Now()
		rows, err := s.Get(t.Context(), []migrate.Key{{"1"}}, true)
		if err != nil || len(rows) != 1 || time.Since(start) != time.Hour {
			t.Errorf("%v, %v after %v", rows, err, time.Since(start))
		}
		if err := s.Await(t.Context(), token); err != nil {
			t.Error(err)
		}
	})
}

func TestSourceFailsAndDelaysAsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := migtest.NewSource(migrate.Axis{By: migrate.ByInteger, Width: 10}, true)
		s.SetDelay(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Now(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		s.Before(func(context.Context, migtest.SourceOp) error { return migrate.ErrTransient })
		if _, _, err := s.Nearest(t.Context(), migrate.Range{}); !errors.Is(err, migrate.ErrTransient) {
			t.Errorf("got %v", err)
		}
		if n := s.Calls(migtest.SourceNearest); n != 1 {
			t.Errorf("%d probes", n)
		}
	})
}

func TestSourceKeepsNotes(t *testing.T) {
	s := migtest.NewSource(migrate.Axis{By: migrate.ByInteger, Width: 10}, true)
	if _, none, _ := s.Pending(t.Context(), 10); !none {
		t.Error("there is an outbox")
	}
	s.Note(migrate.Key{"1"}, migrate.Key{"2"})
	left, none, err := s.Pending(t.Context(), 1)
	if err != nil || none || len(left) != 1 || left[0].Key[0] != "1" {
		t.Errorf("%v, %v, %v", left, none, err)
	}
	s.Clear(t.Context(), left)
	if left, _, _ := s.Pending(t.Context(), 10); len(left) != 1 || left[0].Key[0] != "2" {
		t.Errorf("%v", left)
	}
}
