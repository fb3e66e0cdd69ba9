package seqbolt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	bolt "go.etcd.io/bbolt"
)

// The buckets.
var (
	metaBucket = []byte("tallystick")
	seqBucket  = []byte("sequences")
)

// The keys of the meta bucket. Their values are text.
var (
	keyKind       = []byte("kind")       // what the file is for
	keyFormat     = []byte("format")     // how the items are written
	keyIdentity   = []byte("identity")   // random, of this file
	keyGeneration = []byte("generation") // see [sequence.Store.Generation]
)

// What this version writes and reads.
const (
	kind   = "sequences"
	format = "1"
)

// layOut writes the buckets of a new file.
func layOut(tx *bolt.Tx) error {
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}
	for _, pair := range []struct{ key, value []byte }{
		{keyKind, []byte(kind)}, {keyFormat, []byte(format)}, {keyIdentity, []byte(rand.Text())}, {keyGeneration, []byte("0")},
	} {
		if err := meta.Put(pair.key, pair.value); err != nil {
			return err
		}
	}
	_, err = tx.CreateBucket(seqBucket)
	return err
}

// verify reads the whole file and returns an error unless all of it is as this
// version writes it.
func verify(tx *bolt.Tx, size int64) error {
	if tx.Size() > size {
		return damaged(fmt.Errorf("it has %d bytes and must have %d", size, tx.Size()))
	}
	meta, items := tx.Bucket(metaBucket), tx.Bucket(seqBucket)
	if meta == nil || string(meta.Get(keyKind)) != kind {
		return errForeign
	}
	if f := string(meta.Get(keyFormat)); f != format {
		return otherFormat(f)
	}
	if _, err := generation(meta); err != nil {
		return err
	}
	if items == nil {
		return damaged(errors.New("the sequences are missing"))
	}
	err := items.ForEach(func(name, line []byte) error {
		_, err := decode(string(name), line)
		return err
	})
	if err != nil {
		return err
	}
	return structure(tx)
}

// structure runs bbolt's own check: every page is used once or free. Without
// it a page might be written over that is in use.
func structure(tx *bolt.Tx) error {
	var first error
	for err := range tx.Check() {
		if first == nil {
			first = damaged(err)
		}
	}
	return first
}

func generation(meta *bolt.Bucket) (uint64, error) {
	g, err := strconv.ParseUint(string(meta.Get(keyGeneration)), 10, 64)
	if err != nil {
		return 0, damaged(fmt.Errorf("generation: %w", err))
	}
	return g, nil
}

// bump raises the generation.
func bump(meta *bolt.Bucket) error {
	g, err := generation(meta)
	if err != nil {
		return errRefused{err}
	}
	return meta.Put(keyGeneration, strconv.AppendUint(nil, g+1, 10))
}
