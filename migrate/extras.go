package migrate

import (
	"context"
	"fmt"
)

// extras looks up what the sink holds in the source.
func (v *verification) extras(ctx context.Context) error {
	return v.m.sink.Scan(ctx, "", func(items []Stored, _ string) error {
		var keys []Key
		var live []Stored
		for _, it := range items {
			if !it.Tombstone {
				keys, live = append(keys, it.Key), append(live, it)
			}
		}
		if len(keys) == 0 {
			return nil
		}
		rows, err := v.get(ctx, keys)
		if err != nil {
			return err
		}
		var suspects []suspect
		for _, it := range live {
			if rows[it.Key.String()] == nil {
				suspects = append(suspects, suspect{key: it.Key, stored: it})
			}
		}
		v.note(0, suspects)
		return nil
	})
}

// get returns the rows of keys, mapped, by key.
func (v *verification) get(ctx context.Context, keys []Key) (map[string]*Row, error) {
	var rows []Row
	err := v.m.try(ctx, func() (err error) {
		rows, err = v.m.source.Get(ctx, keys, false)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify: read the source: %w", err)
	}
	byKey := make(map[string]*Row, len(rows))
	for _, r := range rows {
		mapped, err := v.m.mapping(r)
		if err != nil {
			continue
		}
		byKey[r.Key.String()] = &mapped
	}
	return byKey, nil
}
