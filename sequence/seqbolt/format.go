package seqbolt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	bolt "go.etcd.io/bbolt"

	"github.com/tallystick/tallystick/internal/boltfile"
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
	keyCensus     = []byte("census")     // of all records; see [census]
)

// What this version writes and reads.
const (
	kind      = "sequences"
	format    = "2"
	oldFormat = "1" // the same without the census; [Open] brings it up to date
)

// layOut writes the buckets of a new file.
func layOut(tx *bolt.Tx) error {
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}
	for _, pair := range []struct{ key, value []byte }{
		{keyKind, []byte(kind)}, {keyFormat, []byte(format)}, {keyIdentity, []byte(rand.Text())}, {keyGeneration, []byte("0")},
		{keyCensus, []byte(census{}.String())},
	} {
		if err := meta.Put(pair.key, pair.value); err != nil {
			return err
		}
	}
	_, err = tx.CreateBucket(seqBucket)
	return err
}

// verify reads everything and returns an error unless all of it is as this
// version, or the one with oldFormat, writes it.
func verify(tx *bolt.Tx) error {
	meta, items := tx.Bucket(metaBucket), tx.Bucket(seqBucket)
	if meta == nil || string(meta.Get(keyKind)) != kind {
		return boltfile.ErrForeign
	}
	f := string(meta.Get(keyFormat))
	if f != format && f != oldFormat {
		return otherFormat(f)
	}
	if _, err := generation(meta); err != nil {
		return err
	}
	if items == nil {
		return damaged(errors.New("the sequences are missing"))
	}
	found, err := recount(items)
	if err != nil || f == oldFormat && meta.Get(keyCensus) == nil {
		return err
	}
	if want, err := readCensus(meta); err != nil || found == want {
		return err
	}
	return damaged(errors.New("sequences are missing, or older than the file"))
}

// recount checks every record against its checksum. It does not parse them,
// which would take most of the time that opening does.
func recount(items *bolt.Bucket) (c census, err error) {
	err = items.ForEach(func(name, line []byte) error {
		c = c.count(name, line)
		return checkLine(name, line)
	})
	return c, err
}

// update adds to a file of oldFormat what it lacks.
func update(tx *bolt.Tx) error {
	items, meta := tx.Bucket(seqBucket), tx.Bucket(metaBucket)
	c, err := recount(items)
	if err != nil {
		return err
	}
	err = items.ForEach(func(name, line []byte) error {
		_, err := decode(string(name), line)
		return err
	})
	return errors.Join(err, meta.Put(keyCensus, []byte(c.String())), meta.Put(keyFormat, []byte(format)))
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
