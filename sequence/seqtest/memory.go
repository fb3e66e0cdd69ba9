package seqtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tallystick/tallystick/sequence"
)

var _ sequence.Store = (*Memory)(nil)

// Memory is a store in memory: the whole contract but for durability. It
// lists names in byte order. A call whose context has ended does nothing;
// otherwise no call waits or fails for reasons of its own. It is safe for
// concurrent use. Use [NewMemory].
type Memory struct {
	mu         sync.Mutex
	records    map[string]sequence.Record
	generation uint64
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{records: map[string]sequence.Record{}}
}

// Create implements [sequence.Store].
func (m *Memory) Create(ctx context.Context, records []sequence.Record) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	errs := make([]error, len(records))
	for i, r := range records {
		errs[i] = m.create(ctx, r)
	}
	return errs
}

func (m *Memory) create(ctx context.Context, r sequence.Record) error {
	name := r.Definition.Name
	if err := ended(ctx, OpCreate, name); err != nil {
		return err
	}
	if err := sequence.CheckName(name); err != nil {
		return err
	}
	if _, taken := m.records[name]; taken {
		return failed(OpCreate, name, sequence.ErrExists)
	}
	m.records[name] = copied(r)
	return nil
}

// Load implements [sequence.Store].
func (m *Memory) Load(ctx context.Context, name string) (sequence.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(ctx, OpLoad, name)
}

// Advance implements [sequence.Store].
func (m *Memory) Advance(ctx context.Context, a sequence.Advance) (sequence.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.find(ctx, OpAdvance, a.Name)
	if err != nil {
		return sequence.Record{}, err
	}
	if !a.Applies(now) {
		return now, failed(OpAdvance, a.Name, sequence.ErrConflict)
	}
	next := a.To(now)
	m.records[a.Name] = copied(next)
	return next, nil
}

// Swap implements [sequence.Store].
func (m *Memory) Swap(ctx context.Context, nonce string, next sequence.Record) (sequence.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := next.Definition.Name
	now, err := m.find(ctx, OpSwap, name)
	if err != nil {
		return sequence.Record{}, err
	}
	if now.Nonce != nonce {
		return now, failed(OpSwap, name, sequence.ErrConflict)
	}
	m.records[name] = copied(next)
	return next, nil
}

// find returns a copy of a record. The caller holds m.mu.
func (m *Memory) find(ctx context.Context, op Op, name string) (sequence.Record, error) {
	if err := ended(ctx, op, name); err != nil {
		return sequence.Record{}, err
	}
	r, ok := m.records[name]
	if !ok {
		return sequence.Record{}, failed(op, name, sequence.ErrNotFound)
	}
	return copied(r), nil
}

// List implements [sequence.Store].
func (m *Memory) List(ctx context.Context, prefix, after string, limit int) ([]sequence.Record, string, bool, error) {
	if err := ended(ctx, OpList, prefix); err != nil {
		return nil, "", false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.records {
		if name > after && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	more := len(names) > limit
	names = names[:min(limit, len(names))]
	records, last := make([]sequence.Record, len(names)), after
	for i, name := range names {
		records[i], last = copied(m.records[name]), name
	}
	return records, last, more, nil
}

// Generation implements [sequence.Store].
func (m *Memory) Generation(ctx context.Context) (uint64, error) {
	if err := ended(ctx, OpGeneration, ""); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generation, nil
}

// Bump implements [sequence.Store].
func (m *Memory) Bump(ctx context.Context) error {
	if err := ended(ctx, OpBump, ""); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
	return nil
}

// Snapshot returns a store with the present content of m, as a backup has it.
func (m *Memory) Snapshot() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{records: maps.Clone(m.records), generation: m.generation}
}

// Restore replaces the content of m by that of backup, as a careless operator
// does under servers that run.
func (m *Memory) Restore(backup *Memory) {
	other := backup.Snapshot()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records, m.generation = other.records, other.generation
}

// copied returns r with labels of its own.
func copied(r sequence.Record) sequence.Record {
	r.Definition.Labels = maps.Clone(r.Definition.Labels)
	return r
}

// ended returns an error if ctx has ended: then nothing was done.
func ended(ctx context.Context, op Op, name string) error {
	if ctx.Err() == nil {
		return nil
	}
	return failed(op, name, &sequence.Error{Code: sequence.CodeUnavailable, Message: "not done", Err: ctx.Err()})
}

func failed(op Op, name string, err error) error {
	if name == "" {
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s %q: %w", op, name, err)
}
