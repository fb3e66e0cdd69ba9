package migrate_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// TestNotesThatCannotBeReadAreSetAside: the outbox is done with all the same,
// what they said is kept with the reason, and a replay strikes it off.
func TestNotesThatCannotBeReadAreSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 5)
		good, called := w.key(0), migrate.Key{w.key(0)[0][:24] + "%z"}
		w.source.Put(row(good, 1, "good"))
		w.source.Leave(migrate.Left{Key: migrate.Key{"%zz"}, Flaw: "invalid URL escape"}, migrate.Left{Key: migrate.Key{"a", "b"}},
			migrate.Left{Key: good}, migrate.Left{Key: called, Flaw: "invalid URL escape"})
		w.begin()
		if !w.finishesWithin(time.Hour) {
			t.Fatalf("it is %s in phase %s", w.report().Status, w.report().Phase)
		}
		if _, there := w.sink.Row(good); !there {
			t.Error("the row beside them is not there")
		}
		rows, err := w.state.Pod().Quarantined(t.Context(), "", 10)
		if err != nil || len(rows) != 3 || w.report().Rows.Quarantined != 3 {
			t.Fatalf("in quarantine are %v, %v; counted %d", rows, err, w.report().Rows.Quarantined)
		}
		for _, q := range rows {
			if q.Slot != "outbox" || !strings.Contains(q.Reason, "cannot be read") {
				t.Errorf("%+v", q)
			}
		}
		if v := w.verify(migrate.VerifyOptions{Mode: "full"}); v.Clean || v.Quarantined != 3 {
			t.Errorf("verdict %+v", v)
		}
		w.source.Put(row(called, 1, "its key was written as it is"))
		if settled, left, err := w.pod().Replay(t.Context()); settled != 3 || left != 0 || err != nil {
			t.Errorf("settled %d, left %d, %v", settled, left, err)
		}
		if _, there := w.sink.Row(called); !there {
			t.Error("the row whose key was not escaped is not there")
		}
		if v := w.verify(migrate.VerifyOptions{Mode: "full"}); !v.Clean {
			t.Errorf("verdict %+v", v)
		}
	})
}
