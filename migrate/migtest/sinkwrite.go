package migtest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/migrate"
)

// Writer implements [migrate.Sink].
func (s *Sink) Writer() migrate.Writer { return writer{s} }

type writer struct{ *Sink }

// Write implements [migrate.Writer]. It sends one request after the other and
// stops at the first that fails.
func (w writer) Write(ctx context.Context, rows []migrate.Row) ([]migrate.Result, error) {
	return w.inRequests(ctx, rows, w.decide)
}

// Replace implements [migrate.Writer]. It also writes what Write would.
func (w writer) Replace(ctx context.Context, row migrate.Row) (migrate.Result, error) {
	results, err := w.inRequests(ctx, []migrate.Row{row}, w.decideReplace)
	return results[0], err
}

// Bury implements [migrate.Writer].
func (w writer) Bury(ctx context.Context, i migrate.Stored) (migrate.Result, error) {
	if err := w.wait(ctx); err != nil {
		return migrate.Result{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, found := w.items[i.Ref]
	if !found || now.tombstone || now.row.Version != i.Version || now.digest != i.Digest {
		return migrate.Result{Outcome: migrate.AlreadyNewer}, nil
	}
	w.items[i.Ref] = item{row: migrate.Row{Key: now.row.Key, Version: i.Version + 1}, tombstone: true}
	return migrate.Result{Outcome: migrate.Written}, nil
}

// A decision says what becomes of a row, given what is stored.
type decision func(r migrate.Row, now item, found bool) migrate.Outcome

func (s *Sink) inRequests(ctx context.Context, rows []migrate.Row, decide decision) ([]migrate.Result, error) {
	results := make([]migrate.Result, len(rows))
	done := 0
	for part := range slices.Chunk(rows, orDefault(s.Batch, 25)) {
		if err := s.request(ctx, part, results[done:done+len(part)], decide); err != nil {
			return results, fmt.Errorf("write: %w", err)
		}
		done += len(part)
	}
	return results, nil
}

// request carries out one request. Once its time is over before ctx, it lands
// as a whole, but for its fault.
func (s *Sink) request(ctx context.Context, rows []migrate.Row, results []migrate.Result, decide decision) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Requests++
	fault := SinkFault{}
	if s.Fault != nil {
		fault = s.Fault(s.counts.Requests, rows)
	}
	for i, r := range rows {
		if fault.Err != nil && i >= fault.Done+fault.Lost {
			break
		}
		result := s.write(r, decide)
		if fault.Err == nil || i < fault.Done {
			results[i] = result
		}
	}
	return fault.Err
}

// write writes one row and counts it.
func (s *Sink) write(r migrate.Row, decide decision) migrate.Result {
	if s.Refuse != nil {
		if reason := s.Refuse(r); reason != "" {
			s.counts.Refused++
			return migrate.Result{Outcome: migrate.Refused, Reason: reason}
		}
	}
	now, found := s.items[r.Key.String()]
	outcome := decide(r, now, found)
	if outcome == migrate.Written && !s.discard {
		s.store(r)
	}
	s.counts.add(outcome)
	return migrate.Result{Outcome: outcome}
}

// decide is the contract of the modes.
func (s *Sink) decide(r migrate.Row, now item, found bool) migrate.Outcome {
	older := s.Mode == migrate.Guarded && now.row.Version < r.Version
	switch same := found && !now.tombstone && now.digest == migrate.DigestOf(canonical(r)); {
	case !found, s.Mode == migrate.Overwrite, older:
		return migrate.Written
	case same && now.row.Version == r.Version:
		return migrate.AlreadyOurs
	case s.Mode == migrate.Guarded && now.row.Version == r.Version && !now.tombstone:
		return migrate.Differs
	}
	return migrate.AlreadyNewer
}

func (s *Sink) decideReplace(r migrate.Row, now item, found bool) migrate.Outcome {
	outcome := s.decide(r, now, found)
	if outcome == migrate.Differs {
		return migrate.Written
	}
	return outcome
}

func (s *Sink) store(r migrate.Row) {
	s.items[r.Key.String()] = item{row: r, digest: migrate.DigestOf(canonical(r))}
}

func (c *SinkCounts) add(o migrate.Outcome) {
	switch o {
	case migrate.Written:
		c.Written++
	case migrate.AlreadyNewer:
		c.AlreadyNewer++
	case migrate.AlreadyOurs:
		c.AlreadyOurs++
	case migrate.Differs:
		c.Differs++
	}
}

// canonical returns the same bytes for rows with the same content: the fields
// by name. Values count as they are written.
func canonical(r migrate.Row) []byte {
	fields := slices.SortedFunc(slices.Values(r.Fields), func(a, b migrate.Field) int { return strings.Compare(a.Name, b.Name) })
	b := fmt.Appendf(nil, "%q %d\n", r.Key, r.Version)
	for _, f := range fields {
		b = fmt.Appendf(b, "%q %t ", f.Name, f.Map)
		b = appendValue(b, f.Value)
	}
	return b
}

func appendValue(b []byte, v migrate.Value) []byte {
	b = fmt.Appendf(b, "%d %q %d\n", v.Kind, v.Text, len(v.List))
	for _, e := range v.List {
		b = appendValue(b, e)
	}
	return b
}
