package migtest

import (
	"testing"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// testSurvey: the Keeper writes the slots at the first start, for all pods, also
// those that were open before.
func testSurvey(t *testing.T, s *stateTest) {
	bare := plan(3)
	bare.Slots, bare.Sweep, bare.Rows = migrate.Span{}, migrate.Span{}, 0
	s.State = s.pod(t, bare)
	ctx, other := t.Context(), s.pod(t, bare)
	found := migrate.Survey{Slots: slots(0, 3), Sweep: slots(1, 3), Rows: 1 << 40}
	term, err := s.Lead(ctx, "k", time.Minute)
	ok(t, err)
	is(t, s.Survey(ctx, term, found), migrate.ErrWrongStatus)
	ok(t, s.Move(ctx, 0, migrate.NotStarted, migrate.ToStart))
	is(t, s.Survey(ctx, migrate.Term{Keeper: "k", Epoch: term.Epoch - 1}, found), migrate.ErrNotHeld)
	is(t, s.Survey(ctx, migrate.Term{Keeper: "j", Epoch: term.Epoch}, found), migrate.ErrNotHeld)
	same(t, "before", s.view(t).Plan, bare)
	ok(t, s.Survey(ctx, term, found))
	ok(t, s.Survey(ctx, term, migrate.Survey{Slots: slots(0, 9)}))
	want := plan(3)
	want.Surveyed = true
	same(t, "after", s.view(t).Plan, want)
	ok(t, s.Move(ctx, 1, migrate.ToStart, migrate.InProgress))
	is(t, s.Survey(ctx, term, found), migrate.ErrWrongStatus)
	c, err := other.Claim(ctx, request())
	ok(t, err)
	same(t, "claimed by a pod that was there before", c.Slot, at(2))
	ok(t, other.Finish(ctx, c, progress(1), slots(0, 3)))
	same(t, "finished", s.view(t).Finished[migrate.Copying], []migrate.Span{slots(0, 3)})
	ok(t, s.Open(ctx, bare))
	ok(t, s.fixture.Pod(t).Open(ctx, bare))
	same(t, "to those who come later", s.view(t).Plan, want)
}
