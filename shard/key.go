package shard

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
)

// How keys are spread. Neither number ever changes: rows are where they are.
const (
	Count   = 32   // logical shards
	Buckets = 1024 // what a key hashes to; a multiple of Count, so that a shard can be split one day
)

// A Shard is one of the logical shards, 0 to 31. It is a key too, of whatever
// belongs to the shard itself.
type Shard uint8

// Bucket returns the shard's first bucket.
func (s Shard) Bucket() Bucket { return Bucket(s) }

// All returns every shard, rising.
func All() []Shard {
	all := make([]Shard, Count)
	for i := range all {
		all[i] = Shard(i)
	}
	return all
}

// A Bucket is one of 1,024, what a key is routed by.
type Bucket uint16

// Shard returns the shard of the bucket.
func (b Bucket) Shard() Shard { return Shard(b % Count) }

// A Key says where a row is.
type Key interface{ Bucket() Bucket }

// An ID is a positive number that carries its bucket in its low ten bits. Its
// shard is ID mod 32.
type ID int64

// Bucket returns the low ten bits.
func (id ID) Bucket() Bucket { return Bucket(uint64(id) % Buckets) }

// Shard returns id mod 32.
func (id ID) Shard() Shard { return id.Bucket().Shard() }

func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// ParseID reads an id, which is written in decimal digits without a sign or
// leading zeros.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("%q is not an id (want 1 to 19 decimal digits)", s)
	}
	return ID(n), nil
}

// A Text is a key of bytes, like a user or an order.
type Text string

// Bucket returns the first 8 bytes of the text's SHA-256, big-endian, mod 1,024.
// It is frozen: rows are where it once put them. testdata/buckets.golden has
// vectors for other implementations.
func (t Text) Bucket() Bucket {
	sum := sha256.Sum256([]byte(t))
	return Bucket(binary.BigEndian.Uint64(sum[:8]) % Buckets)
}
