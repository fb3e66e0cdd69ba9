package migrate_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
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
