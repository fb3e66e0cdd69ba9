package migrate_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// copied returns a world of one hour of 100 rows that are copied.
func copied(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.fill(0, 100)
	w.begin()
	w.run(t.Context(), 1)
	w.pods.Wait()
	return w
}

// later does what a double-writer does for a note after a while.
func (w *world) later(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		do()
		left, _, _ := w.source.Pending(context.Background(), 1000)
		w.source.Clear(context.Background(), left)
	})
}

// TestRowsOnTheirWayAreNoDifference: their double-writer has not written the
// sink yet, and does while a verification of any mode looks again. What nobody
// writes is one.
func TestRowsOnTheirWayAreNoDifference(t *testing.T) {
	for _, mode := range []string{"counts", "samples", "full"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := copied(t)
				added, another, gone := w.key(0), w.key(0), w.source.All()[99].Key
				w.source.Put(row(added, 1, "new"), row(another, 1, "new"))
				w.source.Delete(gone)
				w.source.Note(another)
				w.source.Leave(migrate.Left{Key: added, Ref: added.String(), Version: 1}, migrate.Left{Key: gone, Ref: gone.String(), Version: 2})
				w.later(20*time.Second, func() {
					w.sink.Put(row(added, 1, "new"))
					w.sink.Put(row(another, 1, "new"))
					w.sink.PutTombstone(gone, 2)
				})
				if v := w.verify(migrate.VerifyOptions{Mode: mode}); !v.Clean || mode != "samples" && v.Compared < 100 {
					t.Errorf("verdict %+v", v)
				}
			})
		})
	}
}

// TestCountsNameTheRowsOfNotesThatAreNotEqual: a row lost and one too many
// would make no difference to a count.
func TestCountsNameTheRowsOfNotesThatAreNotEqual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := copied(t)
		added, gone, nameless := w.key(0), w.source.All()[99].Key, w.source.All()[98].Key
		w.source.Put(row(added, 1, "new"))
		w.source.Delete(gone, nameless)
		w.source.Leave(migrate.Left{Key: added}, migrate.Left{Key: gone, Ref: gone.String(), Version: 2}, migrate.Left{Key: nameless})
		v := w.verify(migrate.VerifyOptions{Mode: "counts"})
		if v.Clean || v.Noted != 3 || v.SourceRows != v.SinkRows || len(v.Missing) != 1 || len(v.Extra) != 1 || len(v.Unsettled) != 1 || !v.Unsettled[0].Equal(nameless) {
			t.Errorf("verdict %+v", v)
		}
	})
}

// TestANoteThatCannotBeReadIsUnsettled while it lies in the outbox.
func TestANoteThatCannotBeReadIsUnsettled(t *testing.T) {
	for _, mode := range []string{"counts", "full"} {
		synctest.Test(t, func(t *testing.T) {
			w := copied(t)
			w.source.Leave(migrate.Left{Key: migrate.Key{"%zz"}, Flaw: "invalid URL escape"})
			if v := w.verify(migrate.VerifyOptions{Mode: mode}); v.Clean || len(v.Unsettled) != 1 || v.Unsettled[0][0] != "%zz" {
				t.Errorf("%s: verdict %+v", mode, v)
			}
		})
	}
}
