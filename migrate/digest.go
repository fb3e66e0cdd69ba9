package migrate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// A Digest is 128 bits of a row's content in canonical form, or the sum of
// such over many rows. A sum, unlike an exclusive or, does not cancel when a
// row is there twice.
type Digest struct{ Hi, Lo uint64 }

// Plus returns the sum modulo 2^128.
func (d Digest) Plus(e Digest) Digest {
	lo, carry := bits.Add64(d.Lo, e.Lo, 0)
	hi, _ := bits.Add64(d.Hi, e.Hi, carry)
	return Digest{hi, lo}
}

// String returns 32 hexadecimal digits.
func (d Digest) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], d.Hi)
	binary.BigEndian.PutUint64(b[8:], d.Lo)
	return hex.EncodeToString(b[:])
}

// DigestOf returns the digest of a canonical form: the first 128 bits of its
// SHA-256.
func DigestOf(canonical []byte) Digest {
	sum := sha256.Sum256(canonical)
	return Digest{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])}
}
