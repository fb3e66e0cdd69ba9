package migrate_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// TestALeftDeletionIsBuriedWithItsVersion: whatever the sink had when the
// double-writer died, a put that comes late does not bring the row back.
func TestALeftDeletionIsBuriedWithItsVersion(t *testing.T) {
	for name, c := range map[string]struct {
		there     int64 // version of the row in the sink; 0: none
		tombstone bool
		note      int64 // version; 0: the note does not say
		want      int64 // of the tombstone; 0: none
	}{
		"an older row":               {there: 5, note: 8, want: 8},
		"nothing":                    {note: 8, want: 8},
		"an older tombstone":         {there: 5, tombstone: true, note: 8, want: 8},
		"the tombstone itself":       {there: 8, tombstone: true, note: 8, want: 8},
		"a newer tombstone":          {there: 9, tombstone: true, note: 8, want: 9},
		"a newer row":                {there: 9, note: 8, want: 0},
		"the row that the note told": {there: 8, note: 8, want: 9},
		"a note without version":     {there: 5, want: 6},
		"neither":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.fill(0, 1)
				k := w.key(0)
				switch {
				case c.tombstone:
					w.sink.PutTombstone(k, c.there)
				case c.there > 0:
					w.sink.Put(row(k, c.there, "old"))
				}
				w.source.Leave(migrate.Left{Key: k, Ref: k.String(), Version: c.note})
				w.begin()
				w.run(t.Context(), 1)
				w.pods.Wait()
				now, err := w.sink.Refresh(t.Context(), []migrate.Stored{{Ref: k.String()}})
				if err != nil || now[0].Tombstone != (c.want > 0) || c.want > 0 && now[0].Version != c.want {
					t.Fatalf("%+v is there, %v; want a tombstone of version %d", now[0], err, c.want)
				}
				if left, _, _ := w.source.Pending(t.Context(), 1); len(left) > 0 {
					t.Errorf("%v is left", left)
				}
				if c.note == 0 {
					return
				}
				w.sink.Writer().Write(t.Context(), []migrate.Row{row(k, c.note-1, "late")})
				if r, found := w.sink.Row(k); found && r.Version < c.note {
					t.Errorf("a late put brought %+v back", r)
				}
			})
		})
	}
}

// TestTheOutboxIsDoneWithUnderTraffic: some notes are always under way, as of
// writers that need 20 ms between the source and the sink. What one that died
// has left is dealt with all the same.
func TestTheOutboxIsDoneWithUnderTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 20)
		ctx, cancel := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		for n := range 8 {
			k := w.key(0)
			writers.Go(func() { w.doubleWrite(ctx, k, time.Duration(n)*3*time.Millisecond) })
		}
		left := w.key(0)
		w.source.Put(row(left, 1, "left"))
		w.source.Note(left)
		w.begin()
		if !w.finishesWithin(time.Minute) {
			t.Errorf("after a minute it is %s in phase %s", w.report().Status, w.report().Phase)
		}
		cancel()
		writers.Wait()
		if _, there := w.sink.Row(left); !there {
			t.Error("finished without a row that was left")
		}
	})
}

// TestANotedRowThatCannotBeStoredIsSetAside: the outbox is done with all the
// same, one row in memory at a time.
func TestANotedRowThatCannotBeStoredIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 5)
		bad, good := w.key(0), w.key(0)
		w.source.Put(row(bad, 1, "too large"), row(good, 1, "good"))
		w.sink.Refuse = func(r migrate.Row) string { return map[string]string{bad.String(): "over 400 KB"}[r.Key.String()] }
		w.source.Note(bad, good, bad)
		w.begin()
		if !w.finishesWithin(time.Hour) {
			t.Fatalf("it is %s in phase %s", w.report().Status, w.report().Phase)
		}
		rows, err := w.state.Pod().Quarantined(t.Context(), "", 10)
		if err != nil || len(rows) != 1 || !rows[0].Key.Equal(bad) || rows[0].Reason == "" || w.report().Rows.Quarantined < 1 {
			t.Errorf("in quarantine are %v, %v; counted %d", rows, err, w.report().Rows.Quarantined)
		}
		if _, there := w.sink.Row(good); !there {
			t.Error("the row beside it is not there")
		}
		if left, _, _ := w.source.Pending(t.Context(), 1); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	})
}

// TestLargeRowsAreBroughtOneByOne: by the drain and by a replay, neither of which
// knows before how large they are.
func TestLargeRowsAreBroughtOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 30)
		bad := true
		w.sink.Refuse = func(migrate.Row) string { return map[bool]string{true: "over 400 KB"}[bad] }
		for _, r := range w.source.All() {
			w.source.Note(r.Key)
		}
		source := &gets{Source: w.source}
		m := migrate.New(w.plan, source, w.sink, w.state.Pod(), migrate.Options{})
		w.begin()
		if err := m.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		bad = false
		if settled, left, err := m.Replay(t.Context()); settled != 30 || left != 0 || err != nil {
			t.Errorf("settled %d, left %d, %v", settled, left, err)
		}
		if source.locked < 60 || source.most != 1 {
			t.Errorf("%d reads, of up to %d rows", source.locked, source.most)
		}
	})
}

// gets is a source of which is known how many rows are got at once.
type gets struct {
	*migtest.Source
	locked, most int
}

func (g *gets) Get(ctx context.Context, keys []migrate.Key, lock bool) ([]migrate.Row, error) {
	g.locked++
	g.most = max(g.most, len(keys))
	return g.Source.Get(ctx, keys, lock)
}

// doubleWrite writes new versions of a row all the time, with notes.
func (w *world) doubleWrite(ctx context.Context, k migrate.Key, late time.Duration) {
	time.Sleep(late)
	for v := int64(1); ctx.Err() == nil; v++ {
		w.source.Put(row(k, v, "x"))
		w.source.Note(k)
		time.Sleep(20 * time.Millisecond)
		w.sink.Put(row(k, v, "x"))
		left, _, _ := w.source.Pending(ctx, 1000)
		w.source.Clear(ctx, slices.DeleteFunc(left, func(l migrate.Left) bool { return !l.Key.Equal(k) }))
		time.Sleep(time.Millisecond)
	}
}
