package seqbolt_test

import (
	"path/filepath"
	"testing"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqbolt"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

func TestStore(t *testing.T) {
	seqtest.TestStore(t, func(t *testing.T) sequence.Store { return open(t, file(t)) })
}

// file returns the path of a file that does not exist yet.
func file(t testing.TB) string { return filepath.Join(t.TempDir(), "tallystick.db") }

// open opens path until the test ends.
func open(t testing.TB, path string) *seqbolt.Store {
	t.Helper()
	store, err := seqbolt.Open(path, seqbolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// record returns a new sequence's record.
func record(t testing.TB, name string) sequence.Record {
	t.Helper()
	d, err := sequence.Spec{Name: name}.Define()
	if err != nil {
		t.Fatal(err)
	}
	return sequence.Record{Definition: d, Epoch: 1, Version: 1, State: sequence.StateOpen, Next: d.Start, Nonce: sequence.NewNonce()}
}

// create makes a sequence.
func create(t testing.TB, store sequence.Store, name string) sequence.Record {
	t.Helper()
	r := record(t, name)
	if err := store.Create(t.Context(), []sequence.Record{r})[0]; err != nil {
		t.Fatal(err)
	}
	return r
}
