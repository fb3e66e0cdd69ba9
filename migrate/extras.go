package migrate

import (
	"context"
	"fmt"
)

// extras looks up what the sink holds in the source, from the mark on.
func (v *verification) extras(ctx context.Context) error {
	err := v.m.sink.Scan(ctx, v.marks.now().Position, func(items []Stored, position string) error {
		suspects, err := v.lookUp(ctx, items)
		if err != nil {
			return err
		}
		v.note(0, suspects)
		if err := v.marks.looked(ctx, position, suspects); err != nil {
			return err
		}
		return v.relieve(ctx)
	})
	if err != nil {
		return fmt.Errorf("verify: scan the sink: %w", err)
	}
	return nil
}

// lookUp returns those of items that are no row's.
func (v *verification) lookUp(ctx context.Context, items []Stored) (suspects []suspect, err error) {
	var keys []Key
	var live []Stored
	for _, it := range items {
		if !it.Tombstone {
			keys, live = append(keys, it.Key), append(live, it)
		}
	}
	rows, err := v.get(ctx, keys)
	if err != nil {
		return nil, err
	}
	for _, it := range live {
		if row := rows[it.Key.String()]; row == nil || v.elsewhere(*row, it) {
			suspects = append(suspects, suspectOf(it.Key, row, it, true))
		}
	}
	return suspects, nil
}

// get returns the rows of keys, mapped, by key. What is no key of the source,
// as of items that something else wrote, has no row.
func (v *verification) get(ctx context.Context, keys []Key) (map[string]*Row, error) {
	known := make([]Key, 0, len(keys))
	for _, k := range keys {
		if len(k) == len(v.m.plan.Source.Key) {
			known = append(known, k)
		}
	}
	if len(known) == 0 {
		return nil, nil
	}
	var rows []Row
	err := v.m.try(ctx, func() (err error) {
		rows, err = v.m.source.Get(ctx, known, false)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify: read the source: %w", err)
	}
	byKey := make(map[string]*Row, len(rows))
	for _, r := range rows {
		mapped := v.mapped(r)
		byKey[r.Key.String()] = &mapped
	}
	return byKey, nil
}
