package seqtest_test

import (
	"testing"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

func TestMemory(t *testing.T) {
	seqtest.TestStore(t, func(*testing.T) sequence.Store { return seqtest.NewMemory() })
}

func TestFaultlessStoreIsTheStoreBelow(t *testing.T) {
	seqtest.TestStore(t, func(*testing.T) sequence.Store { return seqtest.NewFaulty(seqtest.NewMemory()) })
}

func TestRestoreBringsBackThePast(t *testing.T) {
	store := seqtest.NewMemory()
	d, err := sequence.Spec{Name: "s"}.Define()
	if err != nil {
		t.Fatal(err)
	}
	old := sequence.Record{Definition: d, Epoch: 1, Version: 1, State: sequence.StateOpen, Next: 1, Nonce: "a"}
	if err := store.Create(t.Context(), []sequence.Record{old})[0]; err != nil {
		t.Fatal(err)
	}
	backup := store.Snapshot()
	if _, _, err := seqtest.Allocate(t.Context(), store, old, 10); err != nil {
		t.Fatal(err)
	}
	store.Restore(backup)
	got, err := store.Load(t.Context(), "s")
	if err != nil || got.Next != 1 {
		t.Fatalf("after the restore next = %d, %v, want 1", got.Next, err)
	}
}
