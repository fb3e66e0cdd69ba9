package migdynamo

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tallystick/tallystick/migrate"
)

// Writer implements [migrate.Sink].
func (s *Sink) Writer() migrate.Writer { return writer{s} }

type writer struct{ sink *Sink }

// Write implements [migrate.Writer].
func (w writer) Write(ctx context.Context, rows []migrate.Row) ([]migrate.Result, error) {
	s, results := w.sink, make([]migrate.Result, len(rows))
	for _, round := range arrange(s.name(rows, results), rows, results) {
		if err := s.writeRound(ctx, rows, round, results); err != nil {
			return results, fmt.Errorf("migdynamo: write to %q: %w", s.table, err)
		}
	}
	return results, nil
}

// Replace implements [migrate.Writer]. It also writes what Write would: over
// an older version, or where nothing is.
func (w writer) Replace(ctx context.Context, row migrate.Row) (migrate.Result, error) {
	result, err := w.sink.put(ctx, row, true)
	if err != nil {
		err = fmt.Errorf("migdynamo: replace in %q: %w", w.sink.table, err)
	}
	return result, err
}

// writeRound writes the rows with those indexes, no two of which have the same
// item, and sets their results.
func (s *Sink) writeRound(ctx context.Context, rows []migrate.Row, round []int, results []migrate.Result) error {
	if s.mode == migrate.Overwrite {
		batches := slices.Collect(slices.Chunk(round, s.batchRows))
		return each(ctx, inFlight, len(batches), func(ctx context.Context, n int) error {
			return s.putBatch(ctx, rows, batches[n], results)
		})
	}
	return each(ctx, inFlight, len(round), func(ctx context.Context, n int) (err error) {
		i := round[n]
		results[i], err = s.put(ctx, rows[i], false)
		return err
	})
}

// each calls do for 0 to n-1, up to atOnce at a time. After an error or the
// end of ctx it calls no more, waits for those under way and returns the first
// error.
func each(ctx context.Context, atOnce, n int, do func(ctx context.Context, i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range min(atOnce, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failed.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
