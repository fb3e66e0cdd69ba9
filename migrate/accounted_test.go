package migrate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// A forgetful state loses what it was told last, once, as by a failover, and no
// epoch has moved.
type forgetful struct {
	*migtest.State
	lost bool
}

func (f *forgetful) Quarantine(ctx context.Context, c migrate.Claim, rows []migrate.Quarantined) error {
	if f.lost {
		return f.State.Quarantine(ctx, c, rows)
	}
	f.lost = true
	restore := f.Backup()
	defer restore()
	return f.State.Quarantine(ctx, c, rows)
}

// TestALostQuarantineIsNoFinish: rows that were set aside are in quarantine, or
// were taken out, or the state is lost.
func TestALostQuarantineIsNoFinish(t *testing.T) {
	for name, c := range map[string]struct {
		lost, replayed bool
		want           error
	}{"kept": {}, "replayed": {replayed: true}, "lost": {lost: true, want: migrate.ErrStateLost}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(p *migrate.Plan) { p.Workers = 1 })
				w.fill(0, 120)
				bad := w.source.All()[60].Key
				w.sink.Refuse = func(r migrate.Row) string { return map[bool]string{true: "over 400 KB"}[r.Key.Equal(bad)] }
				m := migrate.New(w.plan, w.source, w.sink, &forgetful{State: w.state.Pod(), lost: !c.lost}, migrate.Options{})
				if c.replayed {
					w.source.Before(func(ctx context.Context, op migtest.SourceOp) error {
						if op != migtest.SourcePending { // after the last slot
							return nil
						}
						pod := w.pod()
						w.sink.Refuse = nil
						_, _, err := pod.Replay(ctx)
						return err
					})
				}
				w.begin()
				if err := m.Run(t.Context()); !errors.Is(err, c.want) {
					t.Errorf("error %v, want %v", err, c.want)
				}
				rows, err := w.state.Pod().Quarantined(t.Context(), "", 10)
				if finished := w.report().Status == migrate.Finished; err != nil || finished != (c.want == nil) || finished && (len(rows) == 0) != c.replayed {
					t.Errorf("%s with %v in quarantine, %v", w.report().Status, rows, err)
				}
			})
		})
	}
}
