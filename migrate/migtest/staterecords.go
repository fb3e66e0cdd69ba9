package migtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tallystick/tallystick/migrate"
)

func testLedger(t *testing.T, s *stateTest) {
	s.start(t, 30)
	ctx := t.Context()
	var want []migrate.LedgerLine
	for n := int64(1); n <= 8; n++ {
		c := s.claim(t)
		i := c.Slot.Index - first
		ok(t, s.Finish(ctx, c, progress(n), slots(i-2, i+1)))
		p := progress(n)
		want = append(want, migrate.LedgerLine{Number: n, Pass: migrate.Copying, Slot: StateAxis.Name(c.Slot), Empty: 2, Counts: p.Counts,
			Digest: p.Digest.String(), Worker: "pod 1/2", Epoch: c.Epoch, Plan: "h1", At: time.Now()})
	}
	c := s.claim(t)
	_, rest := s.split(t, c, progress(1), "m")
	s.finish(t, s.claim(t), progress(2))
	ledger := func(from int64, limit int) []migrate.LedgerLine {
		t.Helper()
		lines, err := s.Ledger(ctx, from, limit)
		ok(t, err)
		return lines
	}
	if d := cmp.Diff(want, ledger(0, 8), cmpopts.EquateApproxTime(time.Minute)); d != "" {
		t.Fatalf("ledger (-want +got):\n%s", d)
	}
	if last := ledger(9, 10); len(last) != 1 || last[0].Number != 9 || last[0].Slot != StateAxis.Name(rest) {
		t.Errorf("line of a part: %+v", last)
	}
	same(t, "from 1", ledger(1, 3), ledger(0, 3))
	same(t, "a page", ledger(4, 3), ledger(0, 9)[3:6])
	same(t, "beyond", ledger(10, 3), []migrate.LedgerLine{})
	same(t, "none", ledger(1, 0), []migrate.LedgerLine{})
}

func testQuarantine(t *testing.T, s *stateTest) {
	s.start(t, 3)
	ctx, c := t.Context(), s.claim(t)
	row := func(i int, reason string) migrate.Quarantined {
		return migrate.Quarantined{Key: migrate.Key{fmt.Sprintf("%03d", i), "ü ~+%\x00\"'\\"}, Reason: reason, Slot: "s", At: time.Now().UTC()}
	}
	var want []migrate.Quarantined
	for i := range 25 {
		want = append(want, row(i, "too big"))
	}
	ok(t, s.Quarantine(ctx, c, want[10:]))
	ok(t, s.Quarantine(ctx, c, want[:12]))
	ok(t, s.Quarantine(ctx, c, nil))
	want[3] = row(3, `"NaN" <&> \`)
	ok(t, s.Quarantine(ctx, c, want[3:4]))
	page := func(after string, limit int) []migrate.Quarantined {
		t.Helper()
		rows, err := s.Quarantined(ctx, after, limit)
		ok(t, err)
		return rows
	}
	same(t, "all", page("", 100), want)
	same(t, "a page", page("", 10), want[:10])
	same(t, "the next", page(want[9].Key.String(), 10), want[10:20])
	same(t, "the last", page(want[19].Key.String(), 10), want[20:])
	same(t, "beyond", page(want[24].Key.String(), 10), want[:0])
	same(t, "none", page("", 0), want[:0])
	ok(t, s.Clear(ctx, nil))
	ok(t, s.Clear(ctx, []migrate.Key{want[0].Key, want[2].Key, {"unknown"}}))
	same(t, "cleared", page("", 3), []migrate.Quarantined{want[1], want[3], want[4]})
	same(t, "after one that is gone", page(want[2].Key.String(), 1), want[3:4])
	empty := migrate.Quarantined{Key: migrate.Key{""}, Reason: "empty", Slot: "s", At: time.Now().UTC()}
	ok(t, s.Quarantine(ctx, c, []migrate.Quarantined{empty}))
	same(t, "an empty key", page("", 2), []migrate.Quarantined{empty, want[1]})
	ok(t, s.Clear(ctx, []migrate.Key{empty.Key}))
	same(t, "without it", page("", 1), want[1:2])
}

// testAside: the Keeper's, whose new rows count.
func testAside(t *testing.T, s *stateTest) {
	s.start(t, 3)
	ctx := t.Context()
	first, second := migrate.Quarantined{Key: migrate.Key{"1"}, Reason: "too big"}, migrate.Quarantined{Key: migrate.Key{"2"}, Reason: "too big"}
	term, err := s.Lead(ctx, "k", time.Minute)
	ok(t, err)
	ok(t, s.SetAside(ctx, term, nil))
	ok(t, s.SetAside(ctx, term, []migrate.Quarantined{first}))
	first.Reason = "too old"
	ok(t, s.SetAside(ctx, term, []migrate.Quarantined{first, second}))
	ok(t, s.Resign(ctx, term))
	is(t, s.SetAside(ctx, term, []migrate.Quarantined{{Key: migrate.Key{"3"}}}), migrate.ErrNotHeld)
	_, err = s.Lead(ctx, "k", time.Minute)
	ok(t, err)
	is(t, s.SetAside(ctx, term, []migrate.Quarantined{{Key: migrate.Key{"4"}}}), migrate.ErrNotHeld)
	rows, err := s.Quarantined(ctx, "", 10)
	ok(t, err)
	same(t, "set aside", rows, []migrate.Quarantined{first, second})
	same(t, "counted", s.view(t).Counts, migrate.Counts{Quarantined: 2})
}

func testTally(t *testing.T, s *stateTest) {
	s.start(t, 3)
	ctx, c := t.Context(), s.claim(t)
	tally := func() migrate.Tally {
		t.Helper()
		now, err := s.Tally(ctx)
		ok(t, err)
		return now
	}
	same(t, "nothing yet", tally(), migrate.Tally{})
	ok(t, s.Quarantine(ctx, c, []migrate.Quarantined{{Key: migrate.Key{"1"}}, {Key: migrate.Key{"2"}}, {Key: migrate.Key{"3"}}}))
	ok(t, s.Clear(ctx, []migrate.Key{{"1"}, {"3"}, {"4"}}))
	ok(t, s.Clear(ctx, []migrate.Key{{"1"}}))
	same(t, "cleared", tally(), migrate.Tally{Aside: 1, Cleared: 2})
	ok(t, s.Wrote(ctx))
	same(t, "written", tally(), migrate.Tally{Wrote: s.view(t).Now, Aside: 1, Cleared: 2})
	ok(t, s.Release(ctx, c))
	ok(t, s.Reset(ctx))
	ok(t, s.Open(ctx, plan(3)))
	same(t, "after a reset", tally(), migrate.Tally{})
}

func testVerdict(t *testing.T, s *stateTest) {
	s.start(t, 3)
	_, found, err := s.Verdict(t.Context())
	ok(t, err)
	same(t, "found", found, false)
	at := time.Date(2026, 11, 30, 23, 59, 59, 0, time.UTC)
	clean := func(mode string) migrate.Verdict {
		return migrate.Verdict{Clean: true, Mode: mode, Compared: 1<<53 + 1, Plan: "h1", Since: at, At: at.Add(time.Minute)}
	}
	full := func(since time.Time) migrate.Verdict {
		v := clean("full")
		v.Since = since
		return v
	}
	bad := migrate.Verdict{Mode: "counts", Compared: 4, Missing: []migrate.Key{{"a", "~"}}, Different: []migrate.Key{{"b"}, {""}},
		Extra: []migrate.Key{{"c"}}, Unsettled: []migrate.Key{{"d"}}, Totals: migrate.Totals{Missing: 1<<53 + 1, Unsettled: 1}, Quarantined: 5, Plan: "h1", Since: at, At: at}
	worse := bad
	worse.Mode, worse.Compared = "samples", 9
	sooner, later := bad, bad // with and without digits of a second
	sooner.At, later.At = at.Add(100*time.Millisecond), at.Add(time.Second)
	for i, step := range []struct{ set, want migrate.Verdict }{
		{clean("counts"), clean("counts")},
		{bad, bad},
		{clean("counts"), bad},
		{clean("samples"), bad},
		{worse, worse},
		{clean("full"), clean("full")},
		{clean("samples"), clean("samples")},
		{sooner, sooner},
		{full(at.Add(99 * time.Millisecond)), sooner}, // begun before it
		{full(at), sooner},
		{full(at.Add(time.Second)), full(at.Add(time.Second))},
		{later, later},
		{full(at.Add(999_999_999)), later},
		{full(at.Add(time.Second + 1)), full(at.Add(time.Second + 1))},
	} {
		ok(t, s.SetVerdict(t.Context(), "v", step.set))
		v, found, err := s.Verdict(t.Context())
		ok(t, err)
		same(t, fmt.Sprint("found after step ", i), found, true)
		same(t, fmt.Sprint("verdict after step ", i), v, step.want)
	}
}

func testReset(t *testing.T, s *stateTest) {
	s.start(t, 3)
	ctx, other := t.Context(), s.pod(t, plan(3))
	term, err := s.Lead(ctx, "k", time.Minute)
	ok(t, err)
	ok(t, s.Advance(ctx, term, migrate.PhaseDone))
	s.finish(t, s.claim(t), progress(3))
	c := s.claim(t)
	s.split(t, c, progress(4), "m")
	ok(t, s.Quarantine(ctx, c, []migrate.Quarantined{{Key: migrate.Key{"k"}}}))
	ok(t, s.SetVerdict(ctx, "v", migrate.Verdict{Mode: "full"}))
	ok(t, s.Want(ctx, time.Minute))
	is(t, s.fixture.Pod(t).Reset(ctx), migrate.ErrWrongStatus)
	ok(t, s.Renew(ctx, c))
	ok(t, s.Release(ctx, c))
	ok(t, s.fixture.Pod(t).Reset(ctx)) // one that never opened, like the command
	for name, call := range calls(ctx, other, c, term) {
		if err := call(); !errors.Is(err, migrate.ErrStateLost) {
			t.Errorf("%s of a pod from before: %v, want ErrStateLost", name, err)
		}
	}
	changed := plan(4)
	changed.Hash = "h9"
	s.State = s.pod(t, changed)
	v := s.view(t)
	same(t, "what is left", v, migrate.View{Plan: changed, Status: migrate.NotStarted, Phase: migrate.PhaseCopy, Now: v.Now})
	lines, err := s.Ledger(ctx, 0, 10)
	ok(t, err)
	rows, err := s.Quarantined(ctx, "", 10)
	ok(t, err)
	_, verdict, err := s.Verdict(ctx)
	ok(t, err)
	same(t, "records", []any{len(lines), len(rows), verdict}, []any{0, 0, false})
	ok(t, s.Move(ctx, 0, migrate.NotStarted, migrate.ToStart))
	ok(t, s.Move(ctx, 1, migrate.ToStart, migrate.InProgress))
	d := s.claim(t)
	if d.Epoch <= c.Epoch {
		t.Errorf("epoch %d after the reset, %d before", d.Epoch, c.Epoch)
	}
	same(t, "slot", d.Slot, at(3))
	is(t, s.Renew(ctx, c), migrate.ErrNotHeld)
	is(t, s.Reset(ctx), migrate.ErrWrongStatus)
	s.finish(t, d, progress(1))
	ok(t, s.Reset(ctx))
	ok(t, s.Open(ctx, plan(2))) // the pod that did it may go on
	same(t, "slots", s.view(t).Plan.Slots, slots(0, 2))
}

// calls are all calls of a pod that is open.
func calls(ctx context.Context, s migrate.State, c migrate.Claim, term migrate.Term) map[string]func() error {
	t := &stateTest{State: s}
	all := t.stale(ctx, c)
	for name, call := range map[string]func() error{
		"open":         func() error { return s.Open(ctx, plan(3)) },
		"claim":        func() error { _, err := s.Claim(ctx, request()); return err },
		"want":         func() error { return s.Want(ctx, time.Second) },
		"view":         func() error { _, err := s.View(ctx); return err },
		"move":         func() error { return s.Move(ctx, 0, migrate.NotStarted, migrate.ToStart) },
		"lead":         func() error { _, err := s.Lead(ctx, "k", time.Second); return err },
		"advance":      func() error { return s.Advance(ctx, term, migrate.PhaseDone) },
		"resign":       func() error { return s.Resign(ctx, term) },
		"quarantined":  func() error { _, err := s.Quarantined(ctx, "", 1); return err },
		"wrote":        func() error { return s.Wrote(ctx) },
		"tally":        func() error { _, err := s.Tally(ctx); return err },
		"set aside":    func() error { return s.SetAside(ctx, term, nil) },
		"clear":        func() error { return s.Clear(ctx, []migrate.Key{{"k"}}) },
		"ledger":       func() error { _, err := s.Ledger(ctx, 0, 1); return err },
		"set verdict":  func() error { return s.SetVerdict(ctx, "v", migrate.Verdict{}) },
		"take mark":    func() error { _, _, err := s.TakeMark(ctx, "v"); return err },
		"save mark":    func() error { return s.SaveMark(ctx, "v", migrate.Mark{}) },
		"read verdict": func() error { _, _, err := s.Verdict(ctx); return err },
		"reset":        func() error { return s.Reset(ctx) },
	} {
		all[name] = call
	}
	return all
}

func testLost(t *testing.T, s *stateTest) {
	for how, lose := range map[string]func(s *stateTest) (restore func()){
		"emptied": func(s *stateTest) func() {
			restore := s.fixture.Backup(t)
			s.fixture.Lose(t)
			return restore
		},
		"emptied and opened by another": func(s *stateTest) func() {
			restore := s.fixture.Backup(t)
			s.fixture.Lose(t)
			s.pod(t, plan(3))
			return restore
		},
	} {
		t.Run(how, func(t *testing.T) {
			s := &stateTest{fixture: s.open(t)}
			s.start(t, 3)
			c := s.claim(t)
			term, err := s.Lead(t.Context(), "k", time.Minute)
			ok(t, err)
			restore := lose(s)
			for name, call := range calls(t.Context(), s, c, term) {
				if err := call(); !errors.Is(err, migrate.ErrStateLost) {
					t.Errorf("%s: %v, want ErrStateLost", name, err)
				}
			}
			s.fixture.Lose(t)
			restore()
			ok(t, s.Renew(t.Context(), c))
		})
	}
	t.Run("set back", func(t *testing.T) {
		s := &stateTest{fixture: s.open(t)}
		s.start(t, 3)
		other, restore := s.pod(t, plan(3)), s.fixture.Backup(t)
		c := s.claim(t)
		s.fixture.Lose(t)
		restore()
		for name, call := range calls(t.Context(), s, c, migrate.Term{}) {
			if err := call(); !errors.Is(err, migrate.ErrStateLost) {
				t.Errorf("%s: %v, want ErrStateLost", name, err)
			}
		}
		_, err := other.Claim(t.Context(), request()) // who saw no more than this may go on
		ok(t, err)
	})
}
