package migrate_test

import (
	"testing"
	"testing/synctest"

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
