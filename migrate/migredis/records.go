package migredis

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tallystick/tallystick/migrate"
)

// Quarantine implements [migrate.Records].
func (s *State) Quarantine(ctx context.Context, c migrate.Claim, rows []migrate.Quarantined) error {
	a := s.owner(c)
	if err := a.aside(rows); err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	_, err := s.owning(ctx, "quarantine", c, a)
	return err
}

// SetAside implements [migrate.Records].
func (s *State) SetAside(ctx context.Context, t migrate.Term, rows []migrate.Quarantined) error {
	a := args{"keeper": leader(t)}
	if err := a.aside(rows); err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	_, err := s.registered(ctx, "set aside", "setaside", a)
	return err
}

// aside adds rows for the quarantine.
func (a args) aside(rows []migrate.Quarantined) error {
	keys, texts := make([]string, len(rows)), make([]string, len(rows))
	for i, q := range rows {
		text, err := json.Marshal(q)
		if err != nil {
			return err
		}
		keys[i], texts[i] = q.Key.String(), string(text)
	}
	a["keys"], a["rows"] = keys, texts
	return nil
}

// Quarantined implements [migrate.Records]. Rows come in the order of their
// keys' text.
func (s *State) Quarantined(ctx context.Context, after string, limit int) ([]migrate.Quarantined, error) {
	return page(ctx, s, "quarantined", args{"after": after, "limit": max(limit, 0)}, func(text string) (q migrate.Quarantined, err error) {
		err = json.Unmarshal([]byte(text), &q)
		return q, err
	})
}

// Clear implements [migrate.Records].
func (s *State) Clear(ctx context.Context, keys []migrate.Key) error {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = k.String()
	}
	_, err := s.registered(ctx, "clear", "clear", args{"keys": texts})
	return err
}

// Ledger implements [migrate.Records]. Lines are numbered from 1.
func (s *State) Ledger(ctx context.Context, from int64, limit int) ([]migrate.LedgerLine, error) {
	if limit <= 0 {
		limit, from = 1, 1<<40 // beyond the end
	}
	begin := max(from, 1) - 1
	return page(ctx, s, "ledger", args{"first": begin, "last": begin + int64(limit) - 1}, decodeLine)
}

// page returns what a script lists.
func page[T any](ctx context.Context, s *State, script string, a args, decode func(string) (T, error)) ([]T, error) {
	reply, err := s.call(ctx, script, script, a)
	if err != nil {
		return nil, err
	}
	var all []T
	for _, text := range reply[1].([]any) {
		v, err := decode(text.(string))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", script, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// SetVerdict implements [migrate.Records].
func (s *State) SetVerdict(ctx context.Context, verifier string, v migrate.Verdict) error {
	v.Since, v.At = v.Since.UTC(), v.At.UTC() // the script compares them as text
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("set verdict: %w", err)
	}
	_, err = s.registered(ctx, "set verdict", "setverdict", args{"verdict": string(text), "verifier": verifier})
	return err
}

// Verdict implements [migrate.Records].
func (s *State) Verdict(ctx context.Context) (v migrate.Verdict, found bool, err error) {
	reply, err := s.call(ctx, "verdict", "verdict", nil)
	if err != nil || reply[1].(string) == "" {
		return v, false, err
	}
	return v, true, json.Unmarshal([]byte(reply[1].(string)), &v)
}
