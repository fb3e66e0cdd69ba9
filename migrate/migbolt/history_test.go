package migbolt_test

import (
	"errors"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

// TestClaimsAreLinearizable: workers of one process contend for a few slots,
// each write of them fsynced. That the checker finds planted faults is shown
// with Redis.
func TestClaimsAreLinearizable(t *testing.T) {
	for range 3 {
		s, span := open(t, file(t)), migrate.Span{Lo: 0, Hi: 4}
		err := errors.Join(s.Open(t.Context(), migrate.PlanRecord{Name: "events", Hash: "h", Slots: span}),
			s.Move(t.Context(), 0, migrate.NotStarted, migrate.ToStart), s.Move(t.Context(), 1, migrate.ToStart, migrate.InProgress))
		if err != nil {
			t.Fatal(err)
		}
		pods := make([]migrate.State, 8)
		for i := range pods {
			pod := s.Pod()
			if err := pod.Open(t.Context(), migrate.PlanRecord{Name: "events", Hash: "h"}); err != nil {
				t.Fatal(err)
			}
			pods[i] = pod
		}
		if got := migtest.CheckClaims(migtest.ClaimHistory(t, span, 50, pods...)); got != porcupine.Ok {
			t.Fatalf("the history is %s", got)
		}
	}
}
