package migtest

import (
	"testing"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

func testMarks(t *testing.T, s *stateTest) {
	s.start(t, 3)
	ctx, other := t.Context(), s.pod(t, plan(3))
	take := func(s migrate.State, verifier string) (migrate.Mark, bool) {
		t.Helper()
		m, found, err := s.TakeMark(ctx, verifier)
		ok(t, err)
		return m, found
	}
	mark := func(n int64) migrate.Mark {
		return migrate.Mark{Plan: "h1", Generation: 1<<53 + 1, Aside: "a", Began: time.Now().UTC(), Compared: 1<<53 + n, Last: migrate.Key{"ü ~+%\x00\"'", ""},
			Paged: true, Scanned: true, Open: "t", Position: `[{"after":"x"}]`, Suspects: []migrate.Suspect{{Key: migrate.Key{"k", "~"}, Ref: "r"}}}
	}
	is(t, s.SaveMark(ctx, "a", mark(1)), migrate.ErrNotHeld) // nobody took it
	is(t, s.SaveMark(ctx, "", mark(1)), migrate.ErrNotHeld)
	for range 2 {
		_, found := take(s, "a")
		same(t, "found before anything was saved", found, false)
	}
	ok(t, s.SaveMark(ctx, "a", mark(1)))
	ok(t, s.SaveMark(ctx, "a", mark(2)))
	m, found := take(other, "b")
	same(t, "found by another pod", found, true)
	same(t, "mark", m, mark(2))
	is(t, s.SaveMark(ctx, "a", mark(3)), migrate.ErrNotHeld) // overtaken
	ok(t, s.SetVerdict(ctx, "a", migrate.Verdict{Mode: "full"}))
	ok(t, other.SaveMark(ctx, "b", mark(4)))
	ok(t, other.SetVerdict(ctx, "", migrate.Verdict{Mode: "samples"}))
	m, _ = take(other, "b")
	same(t, "mark after the verdicts of others", m, mark(4))
	ok(t, s.SetVerdict(ctx, "b", migrate.Verdict{Mode: "full", Clean: true}))
	is(t, other.SaveMark(ctx, "b", mark(5)), migrate.ErrNotHeld)
	_, found = take(s, "c")
	same(t, "found after its verdict", found, false)
	ok(t, s.SaveMark(ctx, "c", mark(6)))
	ok(t, s.Reset(ctx))
	ok(t, s.Open(ctx, plan(3)))
	_, found = take(s, "d")
	same(t, "found after a reset", found, false)
}
