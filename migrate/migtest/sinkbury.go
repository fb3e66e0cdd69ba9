package migtest

import (
	"context"

	"github.com/tallystick/tallystick/migrate"
)

// BuryAt implements [migrate.Writer].
func (w writer) BuryAt(ctx context.Context, ref string, version int64) (migrate.Result, error) {
	k, err := migrate.ParseKey(ref)
	if err == nil {
		err = w.wait(ctx)
	}
	if err != nil {
		return migrate.Result{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, found := w.items[ref]
	switch {
	case !found || now.row.Version < version:
		w.items[ref] = item{row: migrate.Row{Key: k, Version: version}, tombstone: true}
		return migrate.Result{Outcome: migrate.Written}, nil
	case now.row.Version == version && !now.tombstone:
		return migrate.Result{Outcome: migrate.Differs}, nil
	}
	return migrate.Result{Outcome: migrate.AlreadyNewer}, nil
}
