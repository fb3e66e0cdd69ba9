package seqbolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqbolt"
)

func TestReopenedFileHasEverything(t *testing.T) {
	path := file(t)
	store, err := seqbolt.Open(path, seqbolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := create(t, store, "orders")
	a := sequence.Advance{Name: "orders", Epoch: 1, Version: 1, Delta: 10, Low: 1, High: 1000, Nonce: "n"}
	want, err := store.Advance(t.Context(), a)
	if err != nil || want.Next != r.Next+10 {
		t.Fatalf("advance = %+v, %v", want, err)
	}
	if err := errors.Join(store.Bump(t.Context()), store.Close()); err != nil {
		t.Fatal(err)
	}
	store = open(t, path)
	if got, err := store.Load(t.Context(), "orders"); err != nil || got.Next != want.Next || got.Nonce != "n" {
		t.Fatalf("load = %+v, %v, want %+v", got, err, want)
	}
	if g, err := store.Generation(t.Context()); err != nil || g != 1 {
		t.Fatalf("generation = %d, %v, want 1", g, err)
	}
}

func TestOpenMakesAPrivateFileAndLeavesNoOther(t *testing.T) {
	path := file(t)
	open(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("mode = %v, %v, want 0600", info.Mode(), err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Fatalf("files = %v, %v, want one", files, err)
	}
}

// refused fails the test unless opening path fails in one line with a remedy
// that contains every word, within a few seconds, and leaves path as it is.
func refused(t *testing.T, path string, words ...string) {
	t.Helper()
	before, _ := os.ReadFile(path)
	begin := time.Now()
	store, err := seqbolt.Open(path, seqbolt.Options{})
	if err == nil {
		store.Close()
		t.Fatal("it was opened")
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, word := range append(words, filepath.Dir(path)) {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
	e, ok := errors.AsType[*sequence.Error](err)
	if !ok || e.Remedy == "" || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q is not one line with a remedy", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

func TestOpenRefusesAFolderItCannotUse(t *testing.T) {
	dir := t.TempDir()
	refused(t, filepath.Join(dir, "missing", "tallystick.db"), "does not exist", "make the folder")
	refused(t, dir, "not a Tallystick sequence store")
}

func TestOpenRefusesForeignFiles(t *testing.T) {
	for name, content := range map[string][]byte{
		"text":        []byte("orders,1000\n"),
		"long text":   bytes.Repeat([]byte("orders,1000\n"), 10_000),
		"zeroes":      make([]byte, 1<<20),
		"SQLite":      append([]byte("SQLite format 3\x00"), make([]byte, 8176)...),
		"one byte":    {0},
		"a meta page": make([]byte, 4096),
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, path, "not a Tallystick sequence store", "untouched")
		})
	}
	t.Run("another bbolt file", func(t *testing.T) {
		path := file(t)
		edit(t, path, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("users")); return err })
		refused(t, path, "not a Tallystick sequence store")
	})
	t.Run("another kind of ours", func(t *testing.T) {
		path := file(t)
		open(t, path).Close()
		edit(t, path, func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("tallystick")).Put([]byte("kind"), []byte("reserve"))
		})
		refused(t, path, "not a Tallystick sequence store")
	})
	t.Run("another format", func(t *testing.T) {
		path := file(t)
		open(t, path).Close()
		edit(t, path, func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("tallystick")).Put([]byte("format"), []byte("3"))
		})
		refused(t, path, `format "3"`, `reads "2"`, "version of tallystick")
	})
	t.Run("an empty file", func(t *testing.T) {
		path := file(t)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, path, "damaged", "empty", "seq adopt")
	})
}

// edit changes a file behind the store's back.
func edit(t *testing.T, path string, change func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesAWrongDigit(t *testing.T) {
	path := file(t)
	store := open(t, path)
	r := record(t, "orders")
	r.Next = 123456789
	if err := errors.Join(store.Create(t.Context(), []sequence.Record{r})[0], store.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content = bytes.Replace(content, []byte(`"123456789"`), []byte(`"123456780"`), 1)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, path, "damaged", `the checksum of sequence "orders" is wrong`, "seq adopt --skip")
}

func TestOpenRefusesTruncatedFiles(t *testing.T) {
	content, _ := grown(t)
	for _, size := range []int{1, 4095, 4096, 8192, 12288, len(content) / 4, len(content) / 3} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			path := file(t)
			if err := os.WriteFile(path, content[:size], 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, path)
		})
	}
}
