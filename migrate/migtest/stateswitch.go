package migtest

import (
	"errors"
	"testing"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// paths lead from a new state to each status.
var paths = map[migrate.Status][]migrate.Status{
	migrate.NotStarted: {},
	migrate.ToStart:    {migrate.ToStart},
	migrate.InProgress: {migrate.ToStart, migrate.InProgress},
	migrate.ToStop:     {migrate.ToStart, migrate.ToStop},
	migrate.Stopped:    {migrate.ToStart, migrate.ToStop, migrate.Stopped},
	migrate.Finished:   {migrate.ToStart, migrate.InProgress, migrate.Finished},
}

// next are the legal changes.
var next = map[migrate.Status][]migrate.Status{
	migrate.NotStarted: {migrate.ToStart},
	migrate.ToStart:    {migrate.InProgress, migrate.ToStop},
	migrate.InProgress: {migrate.ToStop, migrate.Finished},
	migrate.ToStop:     {migrate.Stopped},
	migrate.Stopped:    {migrate.ToStart},
	migrate.Finished:   {},
}

// walk opens a state without slots, whose phase is done, and takes it along
// the path to a status.
func walk(t *testing.T, s *stateTest, to migrate.Status) *stateTest {
	s = &stateTest{fixture: s.open(t)}
	s.State = s.pod(t, plan(0))
	term, err := s.Lead(t.Context(), "k", time.Minute)
	ok(t, err)
	ok(t, s.Advance(t.Context(), term, migrate.PhaseDone))
	now := migrate.NotStarted
	for _, status := range paths[to] {
		ok(t, s.Move(t.Context(), s.view(t).Generation, now, status))
		now = status
	}
	return s
}

func testEdges(t *testing.T, s *stateTest) {
	for from := range paths {
		for to := range paths {
			s := walk(t, s, from)
			before := s.view(t)
			same(t, "status", before.Status, from)
			for other := range paths {
				if other != from {
					is(t, s.Move(t.Context(), before.Generation, other, to), migrate.ErrWrongStatus)
				}
			}
			is(t, s.Move(t.Context(), before.Generation+1, from, to), migrate.ErrWrongStatus)
			is(t, s.Move(t.Context(), before.Generation-1, from, to), migrate.ErrWrongStatus)
			checkEdge(t, s, before, to)
		}
	}
}

// checkEdge moves from where the state was to a status.
func checkEdge(t *testing.T, s *stateTest, before migrate.View, to migrate.Status) {
	t.Helper()
	err := s.Move(t.Context(), before.Generation, before.Status, to)
	after := s.view(t)
	legal := false
	for _, n := range next[before.Status] {
		legal = legal || n == to
	}
	if !legal {
		is(t, err, migrate.ErrWrongStatus)
		same(t, "status", after.Status, before.Status)
		same(t, "generation", after.Generation, before.Generation)
		return
	}
	ok(t, err)
	same(t, "status", after.Status, to)
	generation := before.Generation
	if to == migrate.ToStart {
		generation++
	}
	same(t, "generation", after.Generation, generation)
}

func testConditions(t *testing.T, s *stateTest) {
	s.start(t, 3) // two of them swept
	ctx, finish := t.Context(), func() error { return s.Move(t.Context(), 1, migrate.InProgress, migrate.Finished) }
	started := s.view(t).Started
	if age := time.Since(started); age < -time.Minute || age > time.Minute {
		t.Fatalf("started at %v", started)
	}
	term, err := s.Lead(ctx, "k", time.Minute)
	ok(t, err)
	is(t, finish(), migrate.ErrWrongStatus)
	c := s.claim(t)
	s.finish(t, c, progress(1))
	c = s.claim(t)
	ok(t, s.Finish(ctx, c, progress(1), slots(0, 2)))
	is(t, finish(), migrate.ErrWrongStatus) // no sweep
	c = s.claim(t, func(r *migrate.ClaimRequest) { r.Pass = migrate.Sweeping })
	ok(t, s.Advance(ctx, term, migrate.PhaseDone))
	is(t, finish(), migrate.ErrWrongStatus) // one is live
	ok(t, s.Move(ctx, 1, migrate.InProgress, migrate.ToStop))
	is(t, s.Move(ctx, 1, migrate.ToStop, migrate.Stopped), migrate.ErrWrongStatus)
	ok(t, s.Release(ctx, c))
	ok(t, s.Move(ctx, 1, migrate.ToStop, migrate.Stopped))
	ok(t, s.Move(ctx, 1, migrate.Stopped, migrate.ToStart))
	is(t, s.Move(ctx, 1, migrate.ToStart, migrate.InProgress), migrate.ErrWrongStatus) // of the start before
	ok(t, s.Move(ctx, 2, migrate.ToStart, migrate.InProgress))
	is(t, s.Move(ctx, 2, migrate.InProgress, migrate.Finished), migrate.ErrWrongStatus)
	c = s.claim(t, func(r *migrate.ClaimRequest) { r.Pass = migrate.Sweeping })
	ok(t, s.Finish(ctx, c, progress(1), slots(-9, 9)))
	v := s.view(t)
	same(t, "finished", v.Finished, map[migrate.Pass][]migrate.Span{migrate.Copying: {slots(0, 3)}, migrate.Sweeping: {slots(1, 3)}})
	if !v.Started.Equal(started) {
		t.Errorf("started at %v and again at %v", started, v.Started)
	}
	ok(t, s.Move(ctx, 2, migrate.InProgress, migrate.Finished))
	_, err = s.Claim(ctx, request())
	is(t, err, migrate.ErrWrongStatus)
	if now := s.view(t).Now; time.Since(now).Abs() > time.Minute {
		t.Errorf("the state's clock says %v", now)
	}
}

func testKeeper(t *testing.T, s *stateTest) {
	s.start(t, 3)
	ctx := t.Context()
	a, err := s.Lead(ctx, "a", time.Minute)
	ok(t, err)
	same(t, "keeper", s.view(t).Keeper, "a")
	_, err = s.Lead(ctx, "b", time.Minute)
	is(t, err, migrate.ErrNotHeld)
	again, err := s.Lead(ctx, "a", 60*time.Millisecond)
	ok(t, err)
	same(t, "term", again, a)
	var b migrate.Term
	await(t, "the term to end", func() bool {
		b, err = s.Lead(ctx, "b", time.Minute)
		return err == nil
	})
	if b.Epoch <= a.Epoch || b.Keeper != "b" {
		t.Fatalf("term %+v after %+v", b, a)
	}
	is(t, s.Advance(ctx, a, migrate.PhaseSweep), migrate.ErrNotHeld)
	is(t, s.Resign(ctx, a), migrate.ErrNotHeld)
	is(t, s.Advance(ctx, migrate.Term{Keeper: "b", Epoch: a.Epoch}, migrate.PhaseSweep), migrate.ErrNotHeld)
	is(t, s.Advance(ctx, migrate.Term{Keeper: "a", Epoch: b.Epoch}, migrate.PhaseSweep), migrate.ErrNotHeld)
	same(t, "phase", s.view(t).Phase, migrate.PhaseCopy)
	ok(t, s.Resign(ctx, b))
	same(t, "keeper", s.view(t).Keeper, "")
	is(t, s.Advance(ctx, b, migrate.PhaseSweep), migrate.ErrNotHeld)
	if c, err := s.Lead(ctx, "b", time.Minute); err != nil || c.Epoch <= b.Epoch {
		t.Fatalf("term %+v, %v after %+v", c, err, b)
	}
}

func testPhases(t *testing.T, s *stateTest) {
	s.start(t, 3)
	term, err := s.Lead(t.Context(), "k", time.Minute)
	ok(t, err)
	order := []migrate.Phase{migrate.PhaseCopy, migrate.PhaseSweep, migrate.PhaseOutbox, migrate.PhaseDone}
	for i, p := range order {
		ok(t, s.Advance(t.Context(), term, p))
		ok(t, s.Advance(t.Context(), term, p))
		for _, before := range order[:i] {
			is(t, s.Advance(t.Context(), term, before), migrate.ErrWrongStatus)
		}
		same(t, "phase", s.view(t).Phase, p)
	}
	if err := s.Advance(t.Context(), term, "dinner"); !errors.Is(err, migrate.ErrWrongStatus) {
		t.Errorf("to no phase: %v", err)
	}
}
