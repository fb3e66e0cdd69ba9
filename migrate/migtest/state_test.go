package migtest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migtest"
)

func TestClaimInMemoryExpiresByTheBubblesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := migtest.NewState()
		plan := migrate.PlanRecord{Name: "p", Hash: "h", Slots: migrate.Span{Lo: 0, Hi: 1}}
		err := errors.Join(s.Open(t.Context(), plan), s.Move(t.Context(), 0, migrate.NotStarted, migrate.ToStart),
			s.Move(t.Context(), 1, migrate.ToStart, migrate.InProgress))
		if err != nil {
			t.Fatal(err)
		}
		req := migrate.ClaimRequest{Pass: migrate.Copying, TTL: 20 * time.Second, Within: plan.Slots}
		c, err := s.Claim(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20*time.Second - 1)
		if err := s.Renew(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if err := s.Renew(t.Context(), c); !errors.Is(err, migrate.ErrNotHeld) {
			t.Fatalf("renewed after its end: %v", err)
		}
		if d, err := s.Claim(t.Context(), req); err != nil || d.Epoch <= c.Epoch {
			t.Fatalf("claimed again: %+v, %v", d, err)
		}
	})
}

func TestStateInMemory(t *testing.T) {
	migtest.TestState(t, func(t testing.TB) migtest.StateFixture {
		s := migtest.NewState(migtest.StateAxis)
		return migtest.StateFixture{
			Pod:    func(testing.TB) migrate.State { return s.Pod() },
			Lose:   func(testing.TB) { s.Lose() },
			Backup: func(testing.TB) func() { return s.Backup() },
		}
	})
}

func TestClaimsInMemoryAreLinearizable(t *testing.T) {
	plan := migrate.PlanRecord{Name: "p", Hash: "h", Slots: migrate.Span{Lo: 0, Hi: 4}}
	s := migtest.NewState()
	err := errors.Join(s.Open(t.Context(), plan), s.Move(t.Context(), 0, migrate.NotStarted, migrate.ToStart),
		s.Move(t.Context(), 1, migrate.ToStart, migrate.InProgress))
	if err != nil {
		t.Fatal(err)
	}
	if got := migtest.CheckClaims(migtest.ClaimHistory(t, plan.Slots, 50, s, s, s, s, s, s)); got != porcupine.Ok {
		t.Fatalf("the history is %s", got)
	}
}
