package migbolt_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migbolt"
	"github.com/tallystick/tallystick/migrate/migtest"
)

func TestOpenMakesAPrivateFileAndLeavesNoOther(t *testing.T) {
	path := file(t)
	open(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
}

// refused fails the test unless path is refused soon, in one line with every
// word, and left as it is.
func refused(t *testing.T, path string, words ...string) {
	t.Helper()
	before, _ := os.ReadFile(path)
	begin := time.Now()
	s, err := migbolt.Open(path, migtest.StateAxis)
	if err == nil {
		s.Close()
		t.Fatal("it was opened")
	}
	for _, word := range append(words, filepath.Dir(path)) {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
	if took := time.Since(begin); strings.Contains(err.Error(), "\n") || took > 10*time.Second {
		t.Errorf("error %q after %v", err, took)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

func TestOtherFilesAreRefusedAndLeftAlone(t *testing.T) {
	for name, content := range map[string][]byte{
		"text":        []byte("orders,1000\n"),
		"long text":   bytes.Repeat([]byte("a document\n"), 5000),
		"zeroes":      make([]byte, 1<<20),
		"SQLite":      append([]byte("SQLite format 3\x00"), make([]byte, 8176)...),
		"a meta page": make([]byte, 4096),
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, path, "no state of a migration", "left as it is", "choose another state.path")
		})
	}
	t.Run("an empty one", func(t *testing.T) {
		path := file(t)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, path, "damaged", "it is empty", "start again")
	})
	t.Run("another bbolt file", func(t *testing.T) {
		path := file(t)
		edit(t, path, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("users")); return err })
		refused(t, path, "no state of a migration")
	})
	t.Run("another kind of ours", func(t *testing.T) {
		path := file(t)
		open(t, path).Close()
		edit(t, path, func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("tallystick")).Put([]byte("kind"), []byte("sequences"))
		})
		refused(t, path, "no state of a migration")
	})
	t.Run("another format", func(t *testing.T) {
		path := file(t)
		open(t, path).Close()
		edit(t, path, func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("tallystick")).Put([]byte("format"), []byte("2"))
		})
		refused(t, path, `another format: "2"`, `reads "1"`, "the version of tallystick that wrote it")
	})
	t.Run("a folder", func(t *testing.T) { refused(t, t.TempDir(), "no state of a migration") })
	t.Run("no folder", func(t *testing.T) {
		refused(t, filepath.Join(t.TempDir(), "none", "events.state"), "there is no folder")
	})
}

// edit changes a file behind the state's back.
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

// TestWhatIsNotAsItWasWrittenIsDamage: a whole bbolt file, in which the wrong
// thing stands.
func TestWhatIsNotAsItWasWrittenIsDamage(t *testing.T) {
	key := []byte("header")
	for name, change := range map[string]func(b *bolt.Bucket, old []byte) error{
		"changed": func(b *bolt.Bucket, _ []byte) error {
			return b.Put(key, bytes.Replace(b.Get(key), []byte(`"generation":1`), []byte(`"generation":7`), 1))
		},
		"missing": func(b *bolt.Bucket, _ []byte) error { return b.Delete(key) },
		"old":     func(b *bolt.Bucket, old []byte) error { return b.Put(key, old) },
		"added":   func(b *bolt.Bucket, old []byte) error { return b.Put([]byte("quarantine/k"), old) },
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			open(t, path).Close()
			var old []byte
			edit(t, path, func(tx *bolt.Tx) error {
				old = bytes.Clone(tx.Bucket([]byte("migration")).Get(key))
				return nil
			})
			s := open(t, path)
			err := errors.Join(s.Open(t.Context(), record), s.Move(t.Context(), 0, migrate.NotStarted, migrate.ToStart), s.Close())
			if err != nil {
				t.Fatal(err)
			}
			open(t, path).Close()
			edit(t, path, func(tx *bolt.Tx) error { return change(tx.Bucket([]byte("migration")), old) })
			refused(t, path, "damaged", "not what was written last", "move it away and start again")
		})
	}
}
