package board

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tallystick/tallystick/migrate"
)

// Quarantine implements [migrate.Records].
func (s *State) Quarantine(ctx context.Context, c migrate.Claim, rows []migrate.Quarantined) error {
	return s.owning(ctx, "quarantine", c, func(b *board, _ *entry) error {
		for _, q := range rows {
			if err := b.put(quarantine+q.Key.String(), q); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetAside implements [migrate.Records].
func (s *State) SetAside(ctx context.Context, t migrate.Term, rows []migrate.Quarantined) error {
	return s.leading(ctx, "set aside", t, func(b *board) error {
		for _, q := range rows {
			key := quarantine + q.Key.String()
			if b.tx.Get(key) == nil {
				b.header.Counts.Quarantined++
			}
			if err := b.put(key, q); err != nil {
				return err
			}
		}
		return nil
	})
}

// Quarantined implements [migrate.Records]. Rows come in the order of their
// keys' text.
func (s *State) Quarantined(ctx context.Context, after string, limit int) ([]migrate.Quarantined, error) {
	from := quarantine
	if after != "" {
		from += after + "\x00"
	}
	return page[migrate.Quarantined](ctx, s, quarantine, from, limit)
}

// Clear implements [migrate.Records].
func (s *State) Clear(ctx context.Context, keys []migrate.Key) error {
	if err := s.open(); err != nil {
		return wrap("clear", err)
	}
	return s.update(ctx, "clear", func(b *board) error {
		for _, k := range keys {
			key := quarantine + k.String()
			if b.tx.Get(key) != nil {
				b.header.Cleared++
			}
			b.tx.Delete(key)
		}
		return nil
	})
}

// Ledger implements [migrate.Records]. Lines are numbered from 1.
func (s *State) Ledger(ctx context.Context, from int64, limit int) ([]migrate.LedgerLine, error) {
	return page[migrate.LedgerLine](ctx, s, ledgerKeys, ledgerKey(max(from, 1)), limit)
}

// page returns up to limit values from key from on.
func page[T any](ctx context.Context, s *State, prefix, from string, limit int) (values []T, err error) {
	err = s.view(ctx, "read "+prefix, func(b *board) (err error) {
		if limit <= 0 {
			return nil
		}
		b.tx.Each(prefix, from, func(key string, value []byte) bool {
			var v T
			if json.Unmarshal(value, &v) != nil {
				err = fmt.Errorf("%w: %s", errDamaged, key)
				return false
			}
			values = append(values, v)
			return len(values) < limit
		})
		return err
	})
	return values, err
}

// Replaces reports whether the verdict to is to replace the verdict from: a
// bad one stays until a full verification comes out clean that compared nothing
// before it.
func Replaces(from, to migrate.Verdict) bool {
	return from.Clean || !to.Clean || to.Mode == "full" && !to.Since.Before(from.At)
}

// SetVerdict implements [migrate.Records].
func (s *State) SetVerdict(ctx context.Context, verifier string, v migrate.Verdict) error {
	if err := s.open(); err != nil {
		return wrap("set verdict", err)
	}
	return s.update(ctx, "set verdict", func(b *board) error {
		if old := b.header.Verdict; old == nil || Replaces(*old, v) {
			b.header.Verdict = &v
		}
		return b.dropMark(verifier)
	})
}

// Verdict implements [migrate.Records].
func (s *State) Verdict(ctx context.Context) (v migrate.Verdict, found bool, err error) {
	err = s.view(ctx, "verdict", func(b *board) error {
		if found = b.header.Verdict != nil; found {
			v = *b.header.Verdict
		}
		return nil
	})
	return v, found, err
}
