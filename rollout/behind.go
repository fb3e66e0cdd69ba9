package rollout

import (
	"math"
	"sync"
)

// A behind knows which keys new is behind with, as far as this process saw it:
// readers then want at least that version, or go to old. When there are too
// many, every key counts as one.
type behind[K comparable] struct {
	max int

	mu    sync.Mutex
	turn  uint64 // counts the drains
	keys  map[K]since
	every uint64 // the turn in which keys became too many, plus 1; 0: they are not
}

// unreachable is a version that no row has: only a drain ends it.
const unreachable = math.MaxInt64

// A since is the version that a key is behind with, and the turn it was seen.
type since struct {
	version int64
	turn    uint64
}

func newBehind[K comparable](max int) behind[K] { return behind[K]{max: max, keys: map[K]since{}} }

// add notes that new has to reach a version of key.
func (b *behind[K]) add(key K, version int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.keys[key]
	if !ok && len(b.keys) >= b.max {
		b.every = b.turn + 1
		return
	}
	b.keys[key] = since{max(version, known.version), b.turn}
}

// least returns the version from which on new can be believed about key.
func (b *behind[K]) least(key K) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.every > 0 {
		return unreachable
	}
	return b.keys[key].version
}

// reached notes that new has a version of key.
func (b *behind[K]) reached(key K, version int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.keys[key]; ok && known.version <= version {
		delete(b.keys, key)
	}
}

// begin starts a drain: whatever was added up to now has a note that the drain
// will meet, or its note was dealt with.
func (b *behind[K]) begin() (turn uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	return b.turn
}

// drained ends the drain that begin started, if it dealt with every note.
func (b *behind[K]) drained(turn uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, s := range b.keys {
		if s.turn < turn {
			delete(b.keys, key)
		}
	}
	if b.every > 0 && b.every-1 < turn {
		b.every = 0
	}
}

// size returns how many keys there are.
func (b *behind[K]) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.keys)
}
