package rollout_test

import (
	"testing"

	"github.com/tallystick/tallystick/rollout"
	"github.com/tallystick/tallystick/rollout/rollouttest"
)

func wantValue(t *testing.T, w *world, key string, want int) {
	t.Helper()
	got, found, err := w.store.Get(t.Context(), key)
	if err != nil || got != want || found != (want > 0) {
		t.Errorf("%s is %d, %t, %v, want %d", key, got, found, err, want)
	}
}

func TestReaderThatFellBackIsNotSentToAnOlderRowThatCameLate(t *testing.T) {
	w := newWorld(rollout.NewFirst)
	old, _ := w.old.Put(t.Context(), "a", 1, rollout.Terms{})
	w.old.Put(t.Context(), "a", 2, rollout.Terms{Note: true})
	wantValue(t, w, "a", 2)
	w.new.Put(t.Context(), "a", rollout.Row[int]{Value: 1, Version: old.Version})
	wantValue(t, w, "a", 2)
	w.wantEqual(t)
	wantValue(t, w, "a", 2)
}

func TestReaderThatSawADeletionInCompareDoesNotSeeTheRowAgain(t *testing.T) {
	w := newWorld(rollout.Compare)
	w.store.Put(t.Context(), "a", 1)
	w.old.Delete(t.Context(), "a", rollout.Terms{Note: true}) // by one who died
	wantValue(t, w, "a", 0)
	w.phase = rollout.NewFirst
	wantValue(t, w, "a", 0)
	w.wantEqual(t)
}

func TestDrainForgetsOnlyWhatWasBehindWhenItBegan(t *testing.T) {
	w := newWorld(rollout.NewFirst)
	leaveNotes(t, w)
	looks := 0
	w.plan = func(call string, done bool) error {
		if call != "old.Pending" || !done {
			return nil
		}
		if looks++; looks < 2 { // two notes are a full page
			return nil
		}
		w.plan = func(call string, _ bool) error {
			if call == "new.Put" {
				return errPlanted
			}
			return nil
		}
		w.store.Put(t.Context(), "b", 9) // after the last look
		w.plan = nil
		return nil
	}
	if _, err := w.store.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantValue(t, w, "b", 9)
	w.wantEqual(t)
}

func TestNoteOfAPutWhoseRowWasDeletedInOldOnlyBuriesIt(t *testing.T) {
	w := newWorld(rollout.WriteBoth)
	w.plan = func(call string, done bool) error {
		if call == "new.Put" && !done {
			return rollouttest.ErrLate
		}
		return nil
	}
	w.store.Put(t.Context(), "a", 1)
	w.plan = nil
	w.landAll()
	w.phase = rollout.OldOnly
	w.store.Delete(t.Context(), "a")
	w.phase = rollout.WriteBoth
	w.wantEqual(t)
}
