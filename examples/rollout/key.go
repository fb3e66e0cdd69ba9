package main

import (
	"fmt"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// A key names an event on both sides.
type key struct{ ID, Room string }

// String returns the key as notes have it.
func (k key) String() string { return migrate.Key{k.ID, k.Room}.String() }

// parseKey is the inverse of String.
func parseKey(s string) (key, error) {
	parts, err := migrate.ParseKey(s)
	if err != nil || len(parts) != 2 {
		return key{}, fmt.Errorf("%q is no key: %w", s, err)
	}
	return key{parts[0], parts[1]}, nil
}

// ref returns how migdynamo names the item.
func (k key) ref() string { return migrate.Key{k.Room, k.ID}.String() }

// item returns the key's attributes.
func (k key) item() item { return item{"id": text(k.ID), "room_id": text(k.Room)} }

const events = 1000 // keys that the writers use

// event returns the i-th key: a ULID of some hour of 2024, in one of ten rooms.
func event(i int) key {
	at := time.Date(2024, 10, 20, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 2 * time.Minute)
	return key{ulid(at, uint64(i)), fmt.Sprintf("00000000-0000-4000-8000-%012d", i%10)}
}

// ulid returns a ULID: 48 bits of time and 80 others.
func ulid(at time.Time, rest uint64) string {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	hi, lo := uint64(at.UnixMilli())<<16, rest
	text := make([]byte, 26)
	for i := 25; i >= 0; i-- {
		text[i] = alphabet[lo&31]
		lo, hi = lo>>5|hi<<59, hi>>5
	}
	return string(text)
}
