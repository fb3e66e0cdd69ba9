package migrate

import (
	"context"
	"fmt"
	"time"
)

// replayRows is how many rows in quarantine are tried again at once.
const replayRows = 100

// Replay tries the rows in quarantine again, as the source has them now. It
// returns how many are settled, written or gone from the source, and how many
// stay.
func (m *Migration) Replay(ctx context.Context) (settled, left int, err error) {
	if _, err := m.Open(ctx); err != nil {
		return 0, 0, err
	}
	w := m.sink.Writer()
	for after, end := "", false; !end; {
		page, err := m.state.Quarantined(ctx, after, replayRows)
		if end = len(page) < replayRows; err != nil || len(page) == 0 {
			return settled, left, err
		}
		after = page[len(page)-1].Key.String()
		done, err := m.replayPage(ctx, w, page)
		if err != nil {
			return settled, left, fmt.Errorf("replay: %w", err)
		}
		if err := m.state.Clear(ctx, done); err != nil {
			return settled, left, fmt.Errorf("replay: %w", err)
		}
		settled += len(done)
		left += len(page) - len(done)
	}
	return settled, left, nil
}

// replayPage returns the keys that are settled. One row is in memory at a time:
// what is in quarantine may be large.
func (m *Migration) replayPage(ctx context.Context, w Writer, page []Quarantined) (done []Key, err error) {
	for _, q := range page {
		ok, err := m.replayRow(ctx, w, q.Key)
		if err != nil {
			return done, err
		}
		if ok {
			done = append(done, q.Key)
		}
	}
	return done, nil
}

// replayRow reports whether a row is in the sink now, or gone from the source.
// What a note said that could not be read is no row's key, or that of the row
// that is called so.
func (m *Migration) replayRow(ctx context.Context, w Writer, k Key) (bool, error) {
	if len(k) != len(m.plan.Source.Key) {
		return true, nil
	}
	rows, err := m.source.Get(ctx, []Key{k}, true)
	if err != nil || len(rows) == 0 {
		return err == nil, err
	}
	r, err := m.storeRow(ctx, w, rows[0])
	return err == nil && r.Outcome != Refused, err
}

// Cleanup removes tombstones from the sink and returns how many. It refuses
// before a full verification was clean, and until 20 minutes after the last
// claim ended.
func (m *Migration) Cleanup(ctx context.Context) (removed int, err error) {
	if _, err := m.Open(ctx); err != nil {
		return 0, err
	}
	v, err := m.state.View(ctx)
	if err != nil {
		return 0, err
	}
	verdict, ok, err := m.state.Verdict(ctx)
	switch {
	case err != nil:
		return 0, err
	case v.Status != Finished:
		return 0, fmt.Errorf("%w: it is %s; clean up when it is FINISHED", ErrWrongStatus, v.Status)
	case !ok || !verdict.Clean || verdict.Mode != "full":
		return 0, fmt.Errorf("%w: no full verification has come out clean; run `tallystick migrate verify --mode full`", ErrWrongStatus)
	}
	wait, err := m.quietFor(ctx, v.Now)
	if err != nil {
		return 0, err
	}
	if wait > 0 {
		return 0, fmt.Errorf("%w: requests of the last writer may be under way still; come back in %d minutes", ErrWrongStatus, (wait+time.Minute-1)/time.Minute)
	}
	err = m.sink.Scan(ctx, "", func(items []Stored, _ string) error {
		var dead []Stored
		for _, it := range items {
			if it.Tombstone {
				dead = append(dead, it)
			}
		}
		n, err := m.sink.Delete(ctx, dead)
		removed += n
		return err
	})
	return removed, err
}

// A Preflighter looks at what it stands for before anything is written.
type Preflighter interface {
	Preflight(ctx context.Context) ([]Finding, error)
}

// Preflight looks at source, sink and state before anything is written. A
// finding that is a [Refusal] has to be mended first.
func (m *Migration) Preflight(ctx context.Context) ([]Finding, error) {
	var all []Finding
	for _, part := range []any{m.source, m.sink, m.state} {
		if p, ok := part.(Preflighter); ok {
			found, err := p.Preflight(ctx)
			if err != nil {
				return all, err
			}
			all = append(all, found...)
		}
	}
	if _, ok := m.source.(Settler); !ok {
		all = append(all, Finding{Severity: Warning, Field: "source", Message: "the source cannot tell when open transactions have ended", Remedy: "verify in full before you rely on it"})
	}
	more, err := m.foresee(ctx, FirstRefusal(all) != nil)
	return append(all, more...), err
}

// FirstRefusal returns the first refusal among findings as an error.
func FirstRefusal(findings []Finding) error {
	for _, f := range findings {
		if f.Severity == Refusal {
			return f
		}
	}
	return nil
}
