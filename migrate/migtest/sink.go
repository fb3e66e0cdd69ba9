// Package migtest has what the parts of a migration are tested against.
package migtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

var _ migrate.Sink = (*Sink)(nil)

// A Sink is a [migrate.Sink] in memory. It names items by the row's key. The
// fields are set before it is used; all methods are safe for concurrent use.
type Sink struct {
	Mode     migrate.Mode
	Latency  time.Duration // of a request, which is cut short when its context ends
	Batch    int           // rows of a request; 0: 25. A writer has one request under way at a time
	ScanPart int           // items of a part of a scan; 0: 100

	// Refuse returns why a row can never be stored, "" if it can be. nil: all
	// can.
	Refuse func(migrate.Row) string

	// Fault decides how a write request fails, the zero SinkFault if it does
	// not. Its number begins at 1. It is called for one request at a time.
	Fault func(number int, rows []migrate.Row) SinkFault

	mu      sync.Mutex
	discard bool
	counts  SinkCounts
	items   map[string]item
}

// A SinkFault is how a write request fails. Rows of it beyond Done and Lost are
// not written and have no result.
type SinkFault struct {
	Err  error // what the writer returns; nil: the request does not fail
	Done int   // this many rows are written and have their results
	Lost int   // this many after those are written without a result: their reply is lost
}

// SinkCounts are what became of the rows that were written, those without a
// result included.
type SinkCounts struct {
	Requests     int
	Written      int
	AlreadyNewer int
	AlreadyOurs  int
	Differs      int
	Refused      int
}

type item struct {
	row       migrate.Row
	tombstone bool
	digest    migrate.Digest
}

// NewSink returns an empty sink that writes in mode.
func NewSink(mode migrate.Mode) *Sink { return &Sink{Mode: mode, items: map[string]item{}} }

// NewDiscard returns a sink that takes everything and keeps nothing but
// counts: to measure what feeds it.
func NewDiscard() *Sink {
	s := NewSink(migrate.Overwrite)
	s.discard = true
	return s
}

// Counts returns what became of rows so far.
func (s *Sink) Counts() SinkCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Put stores a row whatever is there, as a double-writer or a saboteur does.
func (s *Sink) Put(r migrate.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(r)
}

// PutTombstone leaves what a double-writer's delete leaves.
func (s *Sink) PutTombstone(key migrate.Key, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[key.String()] = item{row: migrate.Row{Key: key, Version: version}, tombstone: true}
}

// Drop removes an item and tells nobody.
func (s *Sink) Drop(key migrate.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, key.String())
}

// Row returns the stored row with that key, and false if there is none or a
// tombstone.
func (s *Sink) Row(key migrate.Key) (migrate.Row, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.items[key.String()]
	return i.row, ok && !i.tombstone
}

// Len returns the number of items, tombstones included.
func (s *Sink) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

// Expect implements [migrate.Sink].
func (s *Sink) Expect(r migrate.Row) (migrate.Stored, error) {
	if s.Refuse != nil {
		if reason := s.Refuse(r); reason != "" {
			return migrate.Stored{}, fmt.Errorf("row %s: %s", r.Key, reason)
		}
	}
	return item{row: r, digest: migrate.DigestOf(canonical(r))}.stored(), nil
}

// Read implements [migrate.Sink].
func (s *Sink) Read(ctx context.Context, rows []migrate.Row) ([]migrate.Stored, error) {
	names := make([]string, len(rows))
	for n, r := range rows {
		names[n] = r.Key.String()
	}
	return s.read(ctx, names)
}

// Refresh implements [migrate.Sink].
func (s *Sink) Refresh(ctx context.Context, items []migrate.Stored) ([]migrate.Stored, error) {
	names := make([]string, len(items))
	for n, i := range items {
		names[n] = i.Ref
	}
	return s.read(ctx, names)
}

// read returns what is there. What is not has its name, so that it can be
// looked for again.
func (s *Sink) read(ctx context.Context, names []string) ([]migrate.Stored, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]migrate.Stored, len(names))
	for n, name := range names {
		all[n].Ref = name
		if i, ok := s.items[name]; ok {
			all[n] = i.stored()
		}
	}
	return all, nil
}

// Scan implements [migrate.Sink]: in the order of names. A position is the
// last name.
func (s *Sink) Scan(ctx context.Context, position string, visit func([]migrate.Stored, string) error) error {
	for part := range slices.Chunk(s.namesAfter(position), orDefault(s.ScanPart, 100)) {
		if err := s.wait(ctx); err != nil {
			return err
		}
		if err := visit(s.storedOf(part), part[len(part)-1]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sink) namesAfter(position string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.items {
		if name > position || position == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *Sink) storedOf(names []string) []migrate.Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []migrate.Stored
	for _, name := range names {
		if i, ok := s.items[name]; ok {
			all = append(all, i.stored())
		}
	}
	return all
}

// Delete implements [migrate.Sink].
func (s *Sink) Delete(ctx context.Context, tombstones []migrate.Stored) (int, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	deleted := 0
	for _, t := range tombstones {
		if i, ok := s.items[t.Ref]; ok && i.tombstone && i.row.Version == t.Version {
			delete(s.items, t.Ref)
			deleted++
		}
	}
	return deleted, nil
}

// wait takes the time of a request.
func (s *Sink) wait(ctx context.Context) error {
	if s.Latency > 0 && ctx.Err() == nil {
		timer := time.NewTimer(s.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (i item) stored() migrate.Stored {
	return migrate.Stored{Found: true, Tombstone: i.tombstone, Version: i.row.Version, Key: i.row.Key, Digest: i.digest, Ref: i.row.Key.String()}
}

func orDefault(n, def int) int {
	if n > 0 {
		return n
	}
	return def
}
