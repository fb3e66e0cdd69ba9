package migtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

func row(key string, version int64, text string) migrate.Row {
	return migrate.Row{Key: migrate.Key{key}, Version: version, Fields: []migrate.Field{
		{Name: "id", Value: migrate.Value{Kind: migrate.Text, Text: key}},
		{Name: "data", Value: migrate.Value{Kind: migrate.Text, Text: text}},
	}}
}

func rows(n int) []migrate.Row {
	all := make([]migrate.Row, n)
	for i := range all {
		all[i] = row(fmt.Sprintf("k%03d", i), 1, "x")
	}
	return all
}

func outcomes(results []migrate.Result) []migrate.Outcome {
	var all []migrate.Outcome
	for _, r := range results {
		all = append(all, r.Outcome)
	}
	return all
}

func TestSinkWritesWhatItsModeAllows(t *testing.T) {
	for mode, want := range map[migrate.Mode][]migrate.Outcome{
		migrate.Guarded:   {migrate.Written, migrate.AlreadyOurs, migrate.Differs, migrate.Written, migrate.AlreadyNewer, migrate.AlreadyNewer, migrate.Refused},
		migrate.Absent:    {migrate.Written, migrate.AlreadyOurs, migrate.AlreadyNewer, migrate.AlreadyNewer, migrate.AlreadyNewer, migrate.AlreadyNewer, migrate.Refused},
		migrate.Overwrite: {migrate.Written, migrate.Written, migrate.Written, migrate.Written, migrate.Written, migrate.Written, migrate.Refused},
	} {
		t.Run(string(mode), func(t *testing.T) {
			s := migtest.NewSink(mode)
			s.Refuse = func(r migrate.Row) string { return map[string]string{"bad": "too large"}[r.Key[0]] }
			for k, v := range map[string]int64{"same": 5, "other": 5, "older": 4, "newer": 6} {
				s.Put(row(k, v, "x"))
			}
			s.PutTombstone(migrate.Key{"gone"}, 5)
			results, err := s.Writer().Write(t.Context(), []migrate.Row{row("new", 5, "x"), row("same", 5, "x"), row("other", 5, "y"),
				row("older", 5, "x"), row("newer", 5, "x"), row("gone", 5, "x"), row("bad", 5, "x")})
			if err != nil || !cmp.Equal(outcomes(results), want) {
				t.Fatalf("outcomes %v, %v; want %v", outcomes(results), err, want)
			}
		})
	}
}

func TestSinkReplacesOnlyTheSameVersion(t *testing.T) {
	s := migtest.NewSink(migrate.Guarded)
	s.Put(row("a", 5, "old"))
	s.Put(row("b", 6, "newer"))
	s.PutTombstone(migrate.Key{"gone"}, 5)
	for key, want := range map[string]migrate.Outcome{"a": migrate.Written, "b": migrate.AlreadyNewer, "gone": migrate.AlreadyNewer} {
		if r, err := s.Writer().Replace(t.Context(), row(key, 5, "new")); err != nil || r.Outcome != want {
			t.Errorf("%s: %v, %v; want %v", key, r, err, want)
		}
	}
}

func TestSinkHoldsWhatItExpects(t *testing.T) {
	s := migtest.NewSink(migrate.Guarded)
	r := row("a", 5, "x")
	want, err := s.Expect(r)
	if err != nil {
		t.Fatal(err)
	}
	s.Writer().Write(t.Context(), []migrate.Row{r})
	got, err := s.Read(t.Context(), []migrate.Row{r, row("none", 1, "")})
	if diff := cmp.Diff([]migrate.Stored{want, {Ref: "none"}}, got); diff != "" || err != nil {
		t.Fatalf("%v %s", err, diff)
	}
}

func TestSinkBuriesOnlyWhatWasSeen(t *testing.T) {
	s := migtest.NewSink(migrate.Guarded)
	s.Put(row("a", 5, "x"))
	seen, _ := s.Read(t.Context(), []migrate.Row{row("a", 5, "x")})
	s.Put(row("a", 6, "y"))
	if r, err := s.Writer().Bury(t.Context(), seen[0]); r.Outcome != migrate.AlreadyNewer || err != nil {
		t.Fatalf("an item that changed: %v, %v", r, err)
	}
	seen, _ = s.Refresh(t.Context(), seen)
	if r, err := s.Writer().Bury(t.Context(), seen[0]); r.Outcome != migrate.Written || err != nil {
		t.Fatalf("the item as it is: %v, %v", r, err)
	}
	if now, _ := s.Refresh(t.Context(), seen); !now[0].Tombstone || now[0].Version != 7 {
		t.Fatalf("%+v is there", now[0])
	}
}

func TestSinkFailsAsTold(t *testing.T) {
	s := migtest.NewSink(migrate.Overwrite)
	s.Fault = func(n int, _ []migrate.Row) migtest.SinkFault {
		if n == 2 {
			return migtest.SinkFault{Err: migrate.ErrTransient, Done: 3, Lost: 4}
		}
		return migtest.SinkFault{}
	}
	results, err := s.Writer().Write(t.Context(), rows(100))
	if !errors.Is(err, migrate.ErrTransient) {
		t.Fatalf("error %v", err)
	}
	for i, r := range results {
		if known := r.Outcome != migrate.Unknown; known != (i < 28) {
			t.Errorf("row %d: %v", i, r)
		}
	}
	if s.Len() != 32 {
		t.Errorf("%d rows are there, want 32", s.Len())
	}
}

func TestSinkSendsNothingOnceItsContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := migtest.NewSink(migrate.Guarded)
		s.Latency = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		results, err := s.Writer().Write(ctx, rows(100))
		if !errors.Is(err, context.DeadlineExceeded) || s.Len() != 50 || results[49].Outcome != migrate.Written || results[50].Outcome != migrate.Unknown {
			t.Fatalf("%d rows, %v", s.Len(), err)
		}
	})
}

func TestScanOfSinkIsResumed(t *testing.T) {
	s := migtest.NewSink(migrate.Guarded)
	s.ScanPart = 7
	s.Writer().Write(t.Context(), rows(30))
	seen, position, stop := map[string]int{}, "", errors.New("stop")
	for range 10 {
		err := s.Scan(t.Context(), position, func(items []migrate.Stored, p string) error {
			for _, i := range items {
				seen[i.Ref]++
			}
			position = p
			return stop
		})
		if err == nil {
			break
		}
	}
	if len(seen) != 30 {
		t.Fatalf("%d items seen, want 30", len(seen))
	}
	for ref, n := range seen {
		if n != 1 {
			t.Errorf("%s was seen %d times", ref, n)
		}
	}
}

func TestSinkDeletesTombstonesOnly(t *testing.T) {
	s := migtest.NewSink(migrate.Guarded)
	s.Put(row("live", 3, "x"))
	s.PutTombstone(migrate.Key{"gone"}, 3)
	s.PutTombstone(migrate.Key{"newer"}, 4)
	n, err := s.Delete(t.Context(), []migrate.Stored{{Ref: "live", Version: 3}, {Ref: "gone", Version: 3}, {Ref: "newer", Version: 3}, {Ref: "none"}})
	if n != 1 || err != nil || s.Len() != 2 {
		t.Fatalf("%d deleted, %d left, %v", n, s.Len(), err)
	}
}

func TestDiscardKeepsCounts(t *testing.T) {
	s := migtest.NewDiscard()
	if _, err := s.Writer().Write(t.Context(), rows(100)); err != nil || s.Len() != 0 || s.Counts().Written != 100 || s.Counts().Requests != 4 {
		t.Fatalf("%+v, %d kept, %v", s.Counts(), s.Len(), err)
	}
}
