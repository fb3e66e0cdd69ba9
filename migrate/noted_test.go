package migrate_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// verifyDuring verifies in full and does something a minute after it began:
// when the newest rows are compared.
func (w *world) verifyDuring(do func(newest migrate.Key)) migrate.Verdict {
	rows := w.source.All()
	time.AfterFunc(time.Minute, func() { do(rows[len(rows)-1].Key) })
	return w.verify(migrate.VerifyOptions{Mode: "full"})
}

// TestARowWithANoteIsComparedOnceMore: a double-writer changes the source and
// notes it when the row has been compared already.
func TestARowWithANoteIsComparedOnceMore(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*world, migrate.Key)
		want migrate.Verdict // its lists' lengths count
	}{
		"it dies after an update": {func(w *world, k migrate.Key) {
			w.source.Put(row(k, 2, "newer"))
			w.source.Note(k)
		}, migrate.Verdict{Different: make([]migrate.Key, 1)}},
		"it dies after an insert": {func(w *world, _ migrate.Key) {
			k := w.key(50)
			w.source.Put(row(k, 1, "new"))
			w.source.Note(k, k)
		}, migrate.Verdict{Missing: make([]migrate.Key, 1)}},
		"it dies after a deletion": {func(w *world, k migrate.Key) {
			w.source.Delete(k)
			w.source.Leave(migrate.Left{Key: k, Ref: k.String(), Version: 2})
		}, migrate.Verdict{Extra: make([]migrate.Key, 1)}},
		"it dies after both": {func(w *world, k migrate.Key) {
			w.source.Put(row(k, 2, "newer"))
			w.source.Note(k)
			w.sink.Put(row(k, 2, "newer"))
		}, migrate.Verdict{Clean: true}},
		"it is late": {func(w *world, k migrate.Key) {
			w.source.Put(row(k, 2, "newer"))
			w.source.Note(k)
			time.Sleep(2*time.Minute + 25*time.Second) // the row was read again
			w.sink.Put(row(k, 2, "newer"))
			left, _, _ := w.source.Pending(context.Background(), 1)
			w.source.Clear(context.Background(), left)
		}, migrate.Verdict{Clean: true}},
		"its transaction ends late": {func(w *world, k migrate.Key) {
			w.source.Note(w.source.All()[0].Key) // there is an outbox
			end := w.source.Begin()
			time.Sleep(8 * time.Minute)
			w.source.Put(row(k, 2, "newer"))
			w.source.Note(k)
			end()
		}, migrate.Verdict{Different: make([]migrate.Key, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := slowWorld(t)
				v := w.verifyDuring(func(k migrate.Key) { c.do(w, k) })
				if v.Clean != c.want.Clean || len(v.Missing) != len(c.want.Missing) || len(v.Different) != len(c.want.Different) ||
					len(v.Extra) != len(c.want.Extra) || len(v.Unsettled) > 0 {
					t.Errorf("verdict %+v", v)
				}
			})
		})
	}
}

// TestADeletionWhoseNoteNamesNoItemIsUnsettledUntilTheNextScan: only a scan that
// begins after it can tell what is in the sink.
func TestADeletionWhoseNoteNamesNoItemIsUnsettledUntilTheNextScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slowWorld(t)
		var deleted migrate.Key
		v := w.verifyDuring(func(k migrate.Key) {
			time.Sleep(2*time.Minute + 19*time.Second) // the sink's scan ends
			deleted = k
			w.source.Delete(k)
			w.source.Note(k)
		})
		if v.Clean || len(v.Unsettled) != 1 || !v.Unsettled[0].Equal(deleted) {
			t.Errorf("verdict %+v", v)
		}
		v = w.verify(migrate.VerifyOptions{Mode: "full", Repair: true})
		if v.Clean || len(v.Unsettled) > 0 || len(v.Extra) != 1 || !v.Extra[0].Equal(deleted) {
			t.Errorf("the next verdict %+v", v)
		}
		if v = w.verify(migrate.VerifyOptions{Mode: "full"}); !v.Clean {
			t.Errorf("once it is mended: verdict %+v", v)
		}
	})
}

// TestATransactionThatStaysOpenIsNotAwaitedForEver: the verification ends
// without a verdict, and the next one does not compare anything again and awaits
// no other.
func TestATransactionThatStaysOpenIsNotAwaitedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := slowWorld(t)
		w.source.Note(w.source.All()[0].Key)
		end := w.source.Begin()
		began := time.Now()
		_, err := w.pod().Verify(t.Context(), migrate.VerifyOptions{Mode: "full"})
		if err == nil || !strings.Contains(err.Error(), "verify again") || time.Since(began) > time.Hour {
			t.Errorf("error %v after %s", err, time.Since(began))
		}
		defer w.source.Begin()() // one that began since is not awaited
		end()
		if v, read := w.again(migrate.VerifyOptions{Mode: "full"}); !v.Clean || read > 0 {
			t.Errorf("verdict %+v, %d rows read", v, read)
		}
	})
}
