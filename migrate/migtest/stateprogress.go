package migtest

import (
	"testing"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

func testProgress(t *testing.T, s *stateTest) {
	s.start(t, 3)
	c := s.claim(t)
	save := func(p migrate.Progress) error {
		_, err := s.Save(t.Context(), c, p)
		return err
	}
	ok(t, save(progress(10)))
	ok(t, save(progress(20)))
	is(t, save(progress(10)), migrate.ErrNotHeld) // overtaken on its way
	late := progress(20)
	late.Last = migrate.Key{"elsewhere"}
	is(t, save(late), migrate.ErrNotHeld)
	is(t, s.Finish(t.Context(), c, progress(19), migrate.Span{}), migrate.ErrNotHeld)
	p, _ := s.split(t, c, progress(30), "m")
	is(t, save(progress(30)), migrate.ErrNotHeld) // of before the split
	is(t, save(ending(progress(40), migrate.Key{"other"})), migrate.ErrNotHeld)
	is(t, s.Finish(t.Context(), c, ending(progress(40), migrate.Key{"other"}), migrate.Span{}), migrate.ErrNotHeld)
	ok(t, s.Release(t.Context(), c))
	s.claim(t) // the part
	c = s.claim(t)
	same(t, "progress", c.Progress, p)
	ok(t, save(ending(progress(31), p.Lo)))
	ok(t, save(ending(progress(1<<40), p.Lo)))
	is(t, save(ending(progress(1<<40-1), p.Lo)), migrate.ErrNotHeld)
}

func testRepeats(t *testing.T, s *stateTest) {
	s.start(t, 6)
	ctx, c := t.Context(), s.claim(t)
	twice := func(op string, call func() error) {
		t.Helper()
		for range 2 {
			if err := call(); err != nil {
				t.Fatalf("%s: %v", op, err)
			}
		}
	}
	twice("save", func() error { _, err := s.Save(ctx, c, progress(5)); return err })
	rest := migrate.Slot{Index: c.Slot.Index, Below: migrate.Key{"m"}}
	p := ending(progress(6), rest.Below)
	twice("split", func() error { return s.Split(ctx, c, p, rest, migrate.Progress{}) })
	same(t, "parts", s.view(t).Open, []migrate.Slot{rest})
	twice("finish", func() error { return s.Finish(ctx, c, p, migrate.Span{}) })
	part := s.claim(t)
	same(t, "part", part.Slot, rest)
	twice("finish the part", func() error { return s.Finish(ctx, part, progress(4), slots(0, 2)) })
	is(t, s.Release(ctx, part), migrate.ErrNotHeld)
	d := s.claim(t)
	twice("release", func() error { return s.Release(ctx, d) })
	is(t, s.Finish(ctx, d, progress(1), migrate.Span{}), migrate.ErrNotHeld)
	again := s.claim(t)
	twice("release what is claimed again", func() error { return s.Release(ctx, d) })
	ok(t, s.Renew(ctx, again))
	v := s.view(t)
	same(t, "counts", v.Counts, progress(6).Counts.Plus(progress(4).Counts))
	same(t, "finished", v.Finished[migrate.Copying], []migrate.Span{slots(0, 2), slots(5, 6)})
	lines, err := s.Ledger(ctx, 0, 10)
	ok(t, err)
	same(t, "lines", len(lines), 2)
}

func testTotals(t *testing.T, s *stateTest) {
	s.start(t, 6)
	ctx := t.Context()
	total := func(want ...migrate.Progress) {
		t.Helper()
		var sum migrate.Counts
		for _, p := range want {
			sum = sum.Plus(p.Counts)
		}
		same(t, "counts", s.view(t).Counts, sum)
	}
	total()
	c := s.claim(t)
	for _, n := range []int64{10, 20, 20, 30} {
		_, err := s.Save(ctx, c, progress(n))
		ok(t, err)
		total(progress(n))
	}
	ok(t, s.Release(ctx, c))
	total(progress(30)) // the pod went away
	s.State = s.pod(t, plan(6))
	total(progress(30))
	c = s.claim(t)
	same(t, "begins at", c.Progress, progress(30))
	p, _ := s.split(t, c, progress(40), "m")
	part := s.claim(t)
	_, err := s.Save(ctx, part, progress(5))
	ok(t, err)
	total(p, progress(5))
	s.finish(t, part, progress(6))
	total(p, progress(6))
	s.finish(t, c, ending(progress(1<<40), p.Lo))
	total(progress(1<<40), progress(6))
	swept := s.claim(t, func(r *migrate.ClaimRequest) { r.Pass = migrate.Sweeping })
	same(t, "the sweep begins", swept.Progress, migrate.Progress{})
	s.finish(t, swept, progress(46))
	total(progress(1<<40), progress(6), progress(46))
}

func testRelease(t *testing.T, s *stateTest) {
	s.start(t, 3)
	c := s.claim(t)
	ok(t, s.Release(t.Context(), c))
	is(t, s.Renew(t.Context(), c), migrate.ErrNotHeld)
	d := s.claim(t)
	same(t, "slot", d.Slot, c.Slot)
	same(t, "progress", d.Progress, migrate.Progress{})
	_, err := s.Save(t.Context(), d, progress(9))
	ok(t, err)
	ok(t, s.Release(t.Context(), d))
	same(t, "live", s.view(t).Live, []migrate.Held{})
	e := s.claim(t)
	same(t, "slot", e.Slot, c.Slot)
	same(t, "progress", e.Progress, progress(9))
	same(t, "held", s.view(t).Live[0].Counts, progress(9).Counts)
}

func testWant(t *testing.T, s *stateTest) {
	s.start(t, 3)
	ctx, c := t.Context(), s.claim(t)
	n := int64(0)
	wanted := func() bool {
		t.Helper()
		n++
		w, err := s.Save(ctx, c, progress(n))
		ok(t, err)
		return w
	}
	same(t, "wanted before", wanted(), false)
	ok(t, s.Want(ctx, time.Minute))
	for range 2 { // asking does not end it
		same(t, "wanted", wanted(), true)
	}
	ok(t, s.Want(ctx, time.Millisecond)) // does not shorten the wish of another
	begin := time.Now()
	await(t, "the shorter wish to be over", func() bool {
		same(t, "wanted", wanted(), true)
		return time.Since(begin) > 5*time.Millisecond
	})
	s.split(t, c, progress(n), "m")
	s.claim(t)
	c = s.claim(t)
	same(t, "wanted after a split", wanted(), false)
	sent := time.Now()
	ok(t, s.Want(ctx, 100*time.Millisecond))
	await(t, "the wish to expire", func() bool { return !wanted() })
	if heard := time.Since(sent); heard < 100*time.Millisecond-slack {
		t.Errorf("a wish of 100ms was over after %v", heard)
	}
}
