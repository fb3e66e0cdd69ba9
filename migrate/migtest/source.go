package migtest

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

var _ interface {
	migrate.Source
	migrate.Settler
	migrate.Outbox
	migrate.Gauge
} = (*Source)(nil)

// A Source is a table in memory: the whole contract of [migrate.Source] and of
// the optional interfaces. As with a database, [migrate.Page.End] is false
// after a page of exactly limit rows, whether or not more follow. It is safe
// for concurrent use and works in the bubbles of testing/synctest. Use
// [NewSource].
type Source struct {
	axis   migrate.Axis
	oldest bool

	sourceKnobs
	sourceTransactions
	sourceOutbox

	mu   sync.Mutex
	rows []entry // by rising key
}

// An entry is a row and where it lies.
type entry struct {
	at  int64 // of the first part of the key, where its text does not tell
	row migrate.Row
}

// NewSource returns an empty table whose pages come in the given order. Keys
// are ordered by their first part as axis says, and by the others as text.
func NewSource(axis migrate.Axis, oldest bool) *Source {
	return &Source{axis: axis, oldest: oldest}
}

// Put inserts rows, or replaces those of the same keys. It panics if a key has
// no place on the axis.
func (s *Source) Put(rows ...migrate.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		s.rows = append(s.rows, s.entry(r))
	}
	if len(rows) == 1 {
		s.settle()
		return
	}
	slices.SortStableFunc(s.rows, compare)
	s.dropReplaced()
}

// settle moves the last row to its place.
func (s *Source) settle() {
	last := s.rows[len(s.rows)-1]
	i, found := slices.BinarySearchFunc(s.rows[:len(s.rows)-1], last, compare)
	switch {
	case found:
		s.rows[i] = last
		s.rows = s.rows[:len(s.rows)-1]
	case i < len(s.rows)-1:
		s.rows = slices.Insert(s.rows[:len(s.rows)-1], i, last)
	}
}

// dropReplaced keeps the last of rows with the same key.
func (s *Source) dropReplaced() {
	kept := s.rows[:0]
	for i, e := range s.rows {
		if i+1 == len(s.rows) || compare(e, s.rows[i+1]) != 0 {
			kept = append(kept, e)
		}
	}
	s.rows = kept
}

// Delete removes the rows of keys.
func (s *Source) Delete(keys ...migrate.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if i, found := s.find(k); found {
			s.rows = slices.Delete(s.rows, i, i+1)
		}
	}
}

// All returns every row, by rising key.
func (s *Source) All() []migrate.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return rowsOf(s.rows)
}

// Page implements [migrate.Source].
func (s *Source) Page(ctx context.Context, r migrate.Range, after migrate.Key, limit, maxBytes int) (migrate.Page, error) {
	if err := s.enter(ctx, SourcePage); err != nil {
		return migrate.Page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.left(r, after)
	var p migrate.Page
	for size := 0; len(p.Rows) < min(limit, len(left)); {
		if len(p.Rows) > 0 && maxBytes > 0 && size >= maxBytes {
			return s.read(p), nil
		}
		e := left[len(p.Rows)]
		if !s.oldest {
			e = left[len(left)-1-len(p.Rows)]
		}
		p.Rows = append(p.Rows, e.row)
		size += e.row.Size()
	}
	p.End = len(p.Rows) < limit
	return s.read(p), nil
}

// Nearest implements [migrate.Source].
func (s *Source) Nearest(ctx context.Context, r migrate.Range) (migrate.Key, bool, error) {
	if err := s.enter(ctx, SourceNearest); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.left(r, nil)
	switch {
	case len(left) == 0:
		return nil, false, nil
	case s.oldest:
		return left[0].row.Key, true, nil
	}
	return left[len(left)-1].row.Key, true, nil
}

// Get implements [migrate.Source].
func (s *Source) Get(ctx context.Context, keys []migrate.Key, lock bool) ([]migrate.Row, error) {
	if err := s.enter(ctx, SourceGet); err != nil {
		return nil, err
	}
	if lock {
		if err := s.awaitLocks(ctx, keys); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []migrate.Row
	for _, k := range keys {
		if i, found := s.find(k); found {
			rows = append(rows, s.rows[i].row)
		}
	}
	return rows, nil
}

// worthSplitting is how many rows have to be left for [Source.Split] to find a key.
const worthSplitting = 4

// Split implements [migrate.Source].
func (s *Source) Split(ctx context.Context, r migrate.Range, after migrate.Key) (migrate.Key, bool, error) {
	if err := s.enter(ctx, SourceSplit); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.left(r, after)
	if len(left) < worthSplitting {
		return nil, false, nil
	}
	return left[len(left)/2].row.Key, true, nil
}

// Now implements [migrate.Source].
func (s *Source) Now(ctx context.Context) (time.Time, error) {
	return time.Now(), s.enter(ctx, SourceNow)
}

// Extent implements [migrate.Source].
func (s *Source) Extent(ctx context.Context) (migrate.Extent, error) {
	if err := s.enter(ctx, SourceExtent); err != nil {
		return migrate.Extent{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.rows)
	if n == 0 {
		return migrate.Extent{}, nil
	}
	return migrate.Extent{Min: s.rows[0].row.Key, Max: s.rows[n-1].row.Key, Rows: int64(n), RowBytes: int64(s.rows[n/2].row.Data())}, nil
}

// left returns what is left of r beyond after, by rising key. The caller holds
// s.mu.
func (s *Source) left(r migrate.Range, after migrate.Key) []entry {
	lo, hi := 0, len(s.rows)
	if r.Lo != nil {
		lo = s.first(r.Lo)
	}
	if r.Hi != nil {
		hi = s.first(r.Hi)
	}
	switch {
	case after == nil:
	case s.oldest:
		i, found := s.find(after)
		if found {
			i++
		}
		lo = max(lo, i)
	default:
		i, _ := s.find(after)
		hi = min(hi, i)
	}
	return s.rows[min(lo, hi):hi]
}

// first returns the index of the first row at or above a bound, of which only
// the parts that it has count.
func (s *Source) first(bound migrate.Key) int {
	b := s.entry(migrate.Row{Key: bound})
	i, _ := slices.BinarySearchFunc(s.rows, b, func(e, b entry) int {
		e.row.Key = e.row.Key[:min(len(bound), len(e.row.Key))]
		return compare(e, b)
	})
	return i
}

func (s *Source) find(k migrate.Key) (int, bool) {
	return slices.BinarySearchFunc(s.rows, s.entry(migrate.Row{Key: k}), compare)
}

// entry returns r with its place.
func (s *Source) entry(r migrate.Row) entry {
	e := entry{row: r}
	var err error
	switch s.axis.By {
	case migrate.ByInteger:
		e.at, err = strconv.ParseInt(r.Key[0], 10, 64)
	case migrate.ByTimestamp:
		var t time.Time
		t, err = time.Parse(time.RFC3339Nano, r.Key[0])
		e.at = t.UnixMicro()
	}
	if err != nil {
		panic("migtest: key " + r.Key.String() + ": " + err.Error())
	}
	return e
}

// compare orders entries: where at differs, the texts of the first part say
// nothing, and where it is the same, they are.
func compare(a, b entry) int {
	return cmp.Or(cmp.Compare(a.at, b.at), slices.Compare(a.row.Key, b.row.Key))
}

func rowsOf(entries []entry) []migrate.Row {
	rows := make([]migrate.Row, len(entries))
	for i, e := range entries {
		rows[i] = e.row
	}
	return rows
}
