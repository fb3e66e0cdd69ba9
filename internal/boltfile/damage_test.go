package boltfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/internal/boltfile"
	"github.com/tallystick/tallystick/internal/boltfile/boltfiletest"
)

func TestMain(m *testing.M) {
	boltfiletest.ProbeIfAsked(probe)
	os.Exit(m.Run())
}

var bucket, sum = []byte("b"), []byte("sum")

// kind is a kind of file that has, beside its keys, a checksum of them.
var kind = boltfile.Kind{
	LayOut: func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket(bucket)
		return err
	},
	Verify: func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		if b == nil {
			return boltfile.ErrForeign
		}
		if want := b.Get(sum); want != nil && !bytes.Equal(want, sumOf(b)) {
			return boltfile.Damaged(errors.New("the sum is wrong"))
		}
		return nil
	},
}

func sumOf(b *bolt.Bucket) []byte {
	h := crc32.NewIEEE()
	b.ForEach(func(k, v []byte) error {
		if !bytes.Equal(k, sum) {
			fmt.Fprintf(h, "%q %q\n", k, v)
		}
		return nil
	})
	return h.Sum(nil)
}

// probe returns "refused: " and the error of Open; or what stands in the file
// that it accepts, after it was written to; or "broken: " and what went wrong
// with one it accepted.
func probe(path string) string {
	db, _, err := kind.Open(path, boltfile.Options{LockWait: time.Second})
	if err != nil {
		return "refused: " + err.Error()
	}
	defer db.Close()
	h := crc32.NewIEEE()
	err = boltfile.Guarded(func() error {
		return db.Update(func(tx *bolt.Tx) error {
			b := tx.Bucket(bucket)
			h.Write(sumOf(b))
			return b.Put([]byte("one more"), make([]byte, 3000))
		})
	})
	if err != nil {
		return "broken: " + err.Error()
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// TestDamagedFileIsRefusedOrWhole: see [boltfiletest].
func TestDamagedFileIsRefusedOrWhole(t *testing.T) {
	content, old := grown(t)
	boltfiletest.TestDamagedFileIsRefusedOrWhole(t, content, old)
}

// grown returns the content of a file with some hundred keys, some of which are
// large, that was written to often, and what it was before the last writes.
func grown(t *testing.T) (content, old []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.db")
	db, _, err := kind.Open(path, boltfile.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		if i == 300 {
			old = contentAt(t, path)
		}
		err := db.Update(func(tx *bolt.Tx) error {
			b := tx.Bucket(bucket)
			size := 50 + 13*i%200
			if i%100 == 7 {
				size = 20_000
			}
			return errors.Join(b.Put(fmt.Appendf(nil, "key %03d", i*77%250), bytes.Repeat([]byte{byte(i)}, size)), b.Put(sum, sumOf(b)))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return contentAt(t, path), old
}

func contentAt(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
