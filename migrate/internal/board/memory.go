package board

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Memory is a [Store] in memory, to be made with new.
type Memory struct {
	mu     sync.Mutex
	keys   []string // rising
	values map[string][]byte
}

// Update implements [Store].
func (m *Memory) Update(ctx context.Context, f func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	tx := &memoryTx{m: m, undo: map[string][]byte{}}
	err := f(tx)
	if err != nil {
		tx.rollback()
	}
	return err
}

// View implements [Store].
func (m *Memory) View(ctx context.Context, f func(Tx) error) error { return m.Update(ctx, f) }

// Close implements [Store]. What is in memory stays.
func (m *Memory) Close() error { return nil }

// Copy returns everything.
func (m *Memory) Copy() map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.values)
}

// Replace puts values in the place of everything.
func (m *Memory) Replace(values map[string][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values = maps.Clone(values)
	m.keys = slices.Sorted(maps.Keys(values))
}

// A memoryTx is a transaction; undo has what its keys held before.
type memoryTx struct {
	m    *Memory
	undo map[string][]byte
}

func (tx *memoryTx) Get(key string) []byte { return tx.m.values[key] }

func (tx *memoryTx) Put(key string, value []byte) {
	tx.note(key)
	tx.m.set(key, value)
}

func (tx *memoryTx) Delete(key string) {
	tx.note(key)
	tx.m.set(key, nil)
}

func (tx *memoryTx) note(key string) {
	if _, noted := tx.undo[key]; !noted {
		tx.undo[key] = tx.m.values[key]
	}
}

func (tx *memoryTx) rollback() {
	for key, value := range tx.undo {
		tx.m.set(key, value)
	}
}

func (tx *memoryTx) Each(prefix, from string, visit func(string, []byte) bool) {
	i, _ := slices.BinarySearch(tx.m.keys, max(prefix, from))
	for ; i < len(tx.m.keys) && strings.HasPrefix(tx.m.keys[i], prefix); i++ {
		if !visit(tx.m.keys[i], tx.m.values[tx.m.keys[i]]) {
			return
		}
	}
}

// set writes a value, or removes it if it is nil.
func (m *Memory) set(key string, value []byte) {
	i, found := slices.BinarySearch(m.keys, key)
	switch {
	case value == nil && found:
		m.keys = slices.Delete(m.keys, i, i+1)
		delete(m.values, key)
	case value != nil && !found:
		m.keys = slices.Insert(m.keys, i, key)
	}
	if value != nil {
		if m.values == nil {
			m.values = map[string][]byte{}
		}
		m.values[key] = value
	}
}
