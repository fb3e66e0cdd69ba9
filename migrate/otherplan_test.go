package migrate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// TestAStateOfAnotherMigrationIsRefused by everything that looks at it or
// changes it, also once that one is finished.
func TestAStateOfAnotherMigrationIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(0, 10)
		w.begin()
		if !w.finish(time.Hour) {
			t.Fatalf("report %+v", w.report())
		}
		w.plan.Name, w.plan.Text = "other", strings.Replace(w.plan.Text, "name: room_events", "name: other", 1)
		for name, call := range map[string]func(*migrate.Migration, context.Context) error{
			"report": func(m *migrate.Migration, ctx context.Context) error { _, err := m.Report(ctx); return err },
			"try":    func(m *migrate.Migration, ctx context.Context) error { _, _, err := m.Try(ctx, nil, 1); return err },
			"start":  func(m *migrate.Migration, ctx context.Context) error { _, err := m.Start(ctx); return err },
			"stop":   func(m *migrate.Migration, ctx context.Context) error { _, err := m.Stop(ctx, false); return err },
			"run":    (*migrate.Migration).Run,
			"check":  (*migrate.Migration).CheckState,
			"reset":  (*migrate.Migration).Reset,
		} {
			err := call(w.pod(), t.Context())
			if !errors.Is(err, migrate.ErrOtherPlan) || !strings.Contains(err.Error(), `of "room_events"`) {
				t.Errorf("%s: %v", name, err)
			}
		}
		findings, err := w.pod().Preflight(t.Context())
		refusal, _ := migrate.FirstRefusal(findings).(migrate.Finding)
		if err != nil || !strings.Contains(refusal.Message, `of "room_events"`) || !strings.Contains(refusal.Remedy, "state.prefix") {
			t.Errorf("the outlook has %+v, %v", findings, err)
		}
	})
}

// TestResetMakesWayForAnotherPlanOfTheSameMigration: its report is refused
// before.
func TestResetMakesWayForAnotherPlanOfTheSameMigration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.begin()
		w.plan.Text += "# changed\n"
		if _, err := w.pod().Report(t.Context()); !errors.Is(err, migrate.ErrOtherPlan) {
			t.Errorf("report: %v", err)
		}
		if err := w.pod().Reset(t.Context()); err != nil {
			t.Error(err)
		}
		if r := w.report(); r.Status != migrate.NotStarted {
			t.Errorf("report %+v", r)
		}
	})
}
