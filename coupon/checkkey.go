package coupon

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// A CheckKey makes and checks the last two symbols of codes. Nothing prints the
// secret, however the key is formatted.
type CheckKey struct {
	id      string
	created time.Time
	mac     func(text []byte) [sha256.Size]byte // closes over the secret, so that no reflection finds it
}

// Sizes of the secret of a [CheckKey], in bytes.
const (
	MinCheckSecret = 16
	MaxCheckSecret = 64
)

// NewCheckKey returns a key. The id names it in configuration and logs. The
// secret is not kept by reference.
func NewCheckKey(id string, created time.Time, secret []byte) (CheckKey, error) {
	if id == "" || created.IsZero() {
		return CheckKey{}, errors.New("coupon: a check key needs an id and a time of creation")
	}
	if len(secret) < MinCheckSecret || len(secret) > MaxCheckSecret {
		return CheckKey{}, fmt.Errorf("coupon: the secret of check key %q has %d bytes: want %d to %d random ones",
			id, len(secret), MinCheckSecret, MaxCheckSecret)
	}
	secret = slices.Clone(secret)
	return CheckKey{id: id, created: created, mac: func(text []byte) (sum [sha256.Size]byte) {
		h := hmac.New(sha256.New, secret)
		h.Write(text)
		h.Sum(sum[:0])
		return sum
	}}, nil
}

// ID returns the key's id.
func (k CheckKey) ID() string { return k.id }

// Created returns when the key was made.
func (k CheckKey) Created() time.Time { return k.created }

// String returns the key's id.
func (k CheckKey) String() string { return "check key " + k.id }

// check returns the two check symbols of a body: the first 10 bits of its
// HMAC-SHA-256, the first five first.
func (k CheckKey) check(body []byte) [2]byte {
	sum := k.mac(body)
	return [2]byte{alphabet[sum[0]>>3], alphabet[sum[0]<<2&0x1C|sum[1]>>6]}
}

// MaxCheckKeys is how many keys a [Codes] may have. Each more lets as many more
// guesses through to the database.
const MaxCheckKeys = 3

// Codes makes and reads the platform's codes with the check keys that are live.
// The newest key makes new codes; one may be taken away once the last coupon
// whose code it made has expired. It is safe for concurrent use.
type Codes struct {
	keys []CheckKey // newest first
}

// NewCodes returns Codes of one to three keys that differ in id and in time of
// creation, so that every process agrees which is the newest.
func NewCodes(keys ...CheckKey) (*Codes, error) {
	if len(keys) == 0 || len(keys) > MaxCheckKeys {
		return nil, fmt.Errorf("coupon: %d check keys: want 1 to %d, and retire one whose last coupon has expired", len(keys), MaxCheckKeys)
	}
	sorted := slices.SortedFunc(slices.Values(keys), newerFirst)
	for i, k := range sorted {
		if k.mac == nil {
			return nil, errors.New("coupon: a check key was not made by NewCheckKey")
		}
		if i > 0 && k.created.Equal(sorted[i-1].created) {
			return nil, fmt.Errorf("coupon: check keys %q and %q were created at the same time: neither is the newest", sorted[i-1].id, k.id)
		}
		if slices.ContainsFunc(sorted[:i], func(o CheckKey) bool { return o.id == k.id }) {
			return nil, fmt.Errorf("coupon: two check keys have the id %q", k.id)
		}
	}
	return &Codes{keys: sorted}, nil
}

func newerFirst(a, b CheckKey) int { return b.created.Compare(a.created) }

// Newest returns the key that makes new codes. Whoever retires keys has to know
// the last expiry of what it made.
func (c *Codes) Newest() CheckKey { return c.keys[0] }

// New returns a random code of a shard.
func (c *Codes) New(s shard.Shard) Code {
	var random [randomSymbols]byte
	rand.Read(random[:]) // never fails
	return c.code(random, s)
}

// code returns the code whose random symbols are the low five bits of each byte.
func (c *Codes) code(random [randomSymbols]byte, s shard.Shard) Code {
	var symbols [codeSymbols]byte
	for i, b := range random {
		symbols[i] = alphabet[b%base]
	}
	symbols[randomSymbols] = alphabet[byte(s)%base^mask(symbols[:randomSymbols])]
	check := c.keys[0].check(symbols[:bodySymbols])
	copy(symbols[bodySymbols:], check[:])
	return Code{string(symbols[:])}
}

// Parse reads a code as a person may have typed it: in small letters, with O for
// 0, I or L for 1, with spaces and hyphens anywhere. It refuses with
// [ErrMalformedCode] what no live key made: with k keys all but k of 1,024
// guesses or typing errors. It takes the same time whichever of the keys and
// check symbols are wrong.
func (c *Codes) Parse(text string) (Code, error) {
	code, err := ParseStored(text)
	if err != nil {
		return Code{}, err
	}
	body, got := []byte(code.symbols[:bodySymbols]), []byte(code.symbols[bodySymbols:])
	good := 0
	for _, k := range c.keys {
		want := k.check(body)
		good |= subtle.ConstantTimeCompare(want[:], got)
	}
	if good == 0 {
		return Code{}, ErrMalformedCode
	}
	return code, nil
}
