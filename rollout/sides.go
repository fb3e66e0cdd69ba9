package rollout

import "context"

// An OldSide is the store that is left. All methods are safe for concurrent use.
//
// Its versions are positive and belong to changes: each change of a row has one
// above that of every earlier change of the same key, be it a deletion. Where
// rows are deleted and come again, take them from a sequence of the whole
// table, under a lock of the key; a counter in the row would start again.
type OldSide[K comparable, V any] interface {
	// Put writes a row and, if terms want it, the note of it, in one
	// transaction, and returns the note with the version of the change.
	Put(ctx context.Context, key K, value V, terms Terms) (Note[K], error)

	// Delete removes a row likewise; the note has the version of the deletion.
	// Where there is no row it takes a version and leaves the note all the
	// same: new may have the row still, because somebody died deleting it.
	Delete(ctx context.Context, key K, terms Terms) (Note[K], error)

	// Get returns a row, and false if there is none.
	Get(ctx context.Context, key K) (Row[V], bool, error)

	// Pending returns up to limit notes behind the one with the id after, in
	// an order of their ids; "" is before all.
	Pending(ctx context.Context, after string, limit int) ([]Note[K], error)

	// Forget removes notes. Some may be gone already.
	Forget(ctx context.Context, notes []Note[K]) error
}

// Terms of a write to the old side.
type Terms struct {
	Note  bool  // leave a note
	Above int64 // the version has to be greater than this, too
}

// A Note tells that a change of a row may not have reached the new side.
type Note[K comparable] struct {
	ID      string // "" if none was left
	Key     K
	Version int64 // of the change; 0: not known, by a writer that notes keys only
}

// A Row is what a side has of a key.
type Row[V any] struct {
	Value   V
	Version int64
}

// A NewSide is the store that is moved to. All methods are safe for concurrent use.
// An error of Put and Bury leaves open whether it was done, or will be; one of
// which nothing is known matches [ErrUnknownOutcome].
type NewSide[K comparable, V any] interface {
	// Put writes a row where there is none, or one or a tombstone of a smaller
	// version. Otherwise nothing is written and Held is what is there.
	Put(ctx context.Context, key K, row Row[V]) (Held[V], error)

	// Bury puts a tombstone of a version in the place of a row, on the same
	// condition. Where there is nothing it writes the tombstone all the same:
	// a write that comes late has to find it.
	Bury(ctx context.Context, key K, version int64) (Held[V], error)

	// Get returns what is there, by a read that sees every write before it.
	Get(ctx context.Context, key K) (Held[V], error)
}

// A Held is what the new side has of a key. Nothing has version 0.
type Held[V any] struct {
	Row[V]
	Deleted bool // it is a tombstone
	Written bool // by this very call
}

// found reports whether it is a row.
func (h Held[V]) found() bool { return h.Version > 0 && !h.Deleted }
