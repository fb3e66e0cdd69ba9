package migbolt

import (
	"errors"
	"fmt"
	"hash/fnv"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/internal/boltfile"
)

// The buckets.
var (
	metaBucket = []byte("tallystick")
	bucket     = []byte("migration")
)

// The keys of the meta bucket. Their values are text.
var (
	keyKind   = []byte("kind")   // what the file is for
	keyFormat = []byte("format") // how the rest is written
	keyCensus = []byte("census") // of what the bucket has
)

// What this version writes and reads.
const (
	kind   = "migration"
	format = "1"
)

var files = boltfile.Kind{LayOut: layOut, Verify: verify}

// errFormat: another version wrote the file.
var errFormat = errors.New("another format")

// layOut writes the buckets of a new file.
func layOut(tx *bolt.Tx) error {
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}
	_, err = tx.CreateBucket(bucket)
	return errors.Join(err, meta.Put(keyKind, []byte(kind)), meta.Put(keyFormat, []byte(format)), meta.Put(keyCensus, []byte(census{}.String())))
}

// verify reads everything and returns an error unless it is as this version
// writes it.
func verify(tx *bolt.Tx) error {
	meta, values := tx.Bucket(metaBucket), tx.Bucket(bucket)
	switch {
	case meta == nil || string(meta.Get(keyKind)) != kind:
		return boltfile.ErrForeign
	case string(meta.Get(keyFormat)) != format:
		return fmt.Errorf("%w: %q, this version reads %q", errFormat, meta.Get(keyFormat), format)
	case values == nil:
		return boltfile.Damaged(errors.New("the migration is missing"))
	}
	found, err := recount(values)
	if err == nil && found.String() != string(meta.Get(keyCensus)) {
		err = boltfile.Damaged(errors.New("what it has is not what was written last"))
	}
	return err
}

// A census is how many keys there are and the sum of their hashes. It tells
// values apart that are changed, missing, or older than the rest.
type census struct{ keys, sum uint64 }

// String returns it as the file has it.
func (c census) String() string { return fmt.Sprintf("%d %016x", c.keys, c.sum) }

func parseCensus(text []byte) (c census, err error) {
	_, err = fmt.Sscanf(string(text), "%d %x", &c.keys, &c.sum)
	return c, boltfile.Damaged(err)
}

// with returns the census with a value, without returns it without; nil is
// none.
func (c census) with(key, value []byte) census {
	if value == nil {
		return c
	}
	return census{c.keys + 1, c.sum + hash(key, value)}
}

func (c census) without(key, value []byte) census {
	if value == nil {
		return c
	}
	return census{c.keys - 1, c.sum - hash(key, value)}
}

func hash(key, value []byte) uint64 {
	h := fnv.New64a()
	h.Write(key)
	h.Write([]byte{0})
	h.Write(value)
	return h.Sum64()
}

// recount takes the census of a bucket.
func recount(values *bolt.Bucket) (c census, err error) {
	err = values.ForEach(func(k, v []byte) error {
		c = c.with(k, v)
		return nil
	})
	return c, err
}
