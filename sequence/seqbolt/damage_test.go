package seqbolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/internal/boltfile/boltfiletest"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqbolt"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// probe returns "refused: " and the error of Open; or what stands in the file
// that it accepts; or "broken: " and what went wrong with one it accepted.
func probe(path string) string {
	store, err := seqbolt.Open(path, seqbolt.Options{})
	if err != nil {
		if e, ok := errors.AsType[*sequence.Error](err); !ok || e.Remedy == "" {
			return "broken: no remedy: " + err.Error()
		}
		return "refused: " + err.Error()
	}
	defer store.Close()
	content, err := contentOf(store)
	if err != nil {
		return "broken: " + err.Error()
	}
	return content
}

// contentOf returns all counters, by List and by Load, and the first value of
// a block.
func contentOf(store *seqbolt.Store) (string, error) {
	ctx := context.Background()
	records, _, _, err := store.List(ctx, "", "", 1<<30)
	if err != nil {
		return "", err
	}
	var content strings.Builder
	for _, r := range records {
		same, err := store.Load(ctx, r.Definition.Name)
		if err != nil || same.Nonce != r.Nonce {
			return "", fmt.Errorf("%q is listed and not loaded: %v", r.Definition.Name, err)
		}
		fmt.Fprintf(&content, "%s=%d ", r.Definition.Name, r.Next)
	}
	if len(records) > 0 {
		block, _, err := seqtest.Allocate(ctx, store, records[len(records)/2], 10)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&content, "block from %d", block.First)
	}
	return content.String(), nil
}

// page is the size of bbolt's pages.
const page = 4096

// TestDamagedFileIsRefusedOrWhole: a file that is accepted has every sequence
// where it stood; see [boltfiletest].
func TestDamagedFileIsRefusedOrWhole(t *testing.T) {
	content, old := grown(t)
	boltfiletest.TestDamagedFileIsRefusedOrWhole(t, content, old)
}

// grown returns the content of a file with a few hundred sequences, all of
// which have moved, and what it was before the last hundred writes.
func grown(t *testing.T) (content, old []byte) {
	path := file(t)
	store := open(t, path)
	var batch []sequence.Record
	for i := range 200 {
		batch = append(batch, record(t, fmt.Sprintf("s%03d", i)))
	}
	if err := errors.Join(store.Create(t.Context(), batch)...); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if i == 100 {
			old = contentAt(t, path)
		}
		if _, _, err := seqtest.Allocate(t.Context(), store, batch[i*77%200], int64(1000+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return contentAt(t, path), old
}

func contentAt(t *testing.T, path string) []byte {
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestOlderMetaPageIsNotGoneBackTo: bbolt would, where the newer of the two is
// damaged, and hand the last block out again.
func TestOlderMetaPageIsNotGoneBackTo(t *testing.T) {
	content, _ := grown(t)
	for n := range 2 {
		damaged := bytes.Clone(content)
		damaged[n*page+70]++ // its transaction
		path := file(t)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, path, "damaged", fmt.Sprintf("meta page %d", n))
	}
}

// TestMissingAndOldRecordsAreNoticed changes whole records behind the store's
// back: no checksum of a record can tell.
func TestMissingAndOldRecordsAreNoticed(t *testing.T) {
	for name, change := range map[string]func(*bolt.Bucket, []byte) error{
		"missing": func(items *bolt.Bucket, _ []byte) error { return items.Delete([]byte("orders")) },
		"old":     func(items *bolt.Bucket, line []byte) error { return items.Put([]byte("orders"), line) },
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			store := open(t, path)
			r := create(t, store, "orders")
			create(t, store, "other")
			old := lineOf(t, store, path, "orders")
			store = open(t, path)
			if _, _, err := seqtest.Allocate(t.Context(), store, r, 10); err != nil {
				t.Fatal(err)
			}
			store.Close()
			edit(t, path, func(tx *bolt.Tx) error { return change(tx.Bucket([]byte("sequences")), old) })
			refused(t, path, "damaged", "missing, or older")
		})
	}
}

// lineOf closes a store and returns a record's line.
func lineOf(t *testing.T, store *seqbolt.Store, path, name string) (line []byte) {
	t.Helper()
	store.Close()
	edit(t, path, func(tx *bolt.Tx) error {
		line = bytes.Clone(tx.Bucket([]byte("sequences")).Get([]byte(name)))
		return nil
	})
	return line
}

func TestFileWithoutCensusGetsOne(t *testing.T) {
	path := file(t)
	store := open(t, path)
	create(t, store, "orders")
	store.Close()
	edit(t, path, func(tx *bolt.Tx) error { // as the first format was
		meta := tx.Bucket([]byte("tallystick"))
		return errors.Join(meta.Delete([]byte("census")), meta.Put([]byte("format"), []byte("1")))
	})
	store = open(t, path)
	create(t, store, "other")
	store.Close()
	store = open(t, path)
	if records, _, _, err := store.List(t.Context(), "", "", 9); err != nil || len(records) != 2 {
		t.Errorf("%d records, %v", len(records), err)
	}
	store.Close()
	edit(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte("sequences")).Delete([]byte("orders")) })
	refused(t, path, "damaged", "missing")
}
