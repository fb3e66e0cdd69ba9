package migtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

func testPlan(t *testing.T, s *stateTest) {
	s.State = s.fixture.Pod(t)
	if v := s.view(t); v.Status != migrate.NotStarted || v.Plan.Hash != "" || v.Generation != 0 {
		t.Fatalf("before anything: %+v", v)
	}
	s.State = s.pod(t, plan(10))
	later := plan(10)
	later.Slots.Hi, later.Rows = later.Slots.Hi+5, 7 // the table grew
	ok(t, s.fixture.Pod(t).Open(t.Context(), later))
	ok(t, s.Open(t.Context(), later))
	same(t, "plan", s.view(t).Plan, plan(10))

	other := plan(10)
	other.Hash, other.Text = "h2", "name: events\nworkers: 9\n"
	pod := s.fixture.Pod(t)
	err := pod.Open(t.Context(), other)
	is(t, err, migrate.ErrOtherPlan)
	for _, part := range []string{"line 2", "workers: 8", "workers: 9"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if err := pod.Move(t.Context(), 0, migrate.NotStarted, migrate.ToStart); err == nil {
		t.Error("a pod that was refused started the migration")
	}
	same(t, "plan", s.view(t).Plan, plan(10))
}

// testLookWhileOpening: a status that is asked for while the pod writes its plan
// is one from before or from after it.
func testLookWhileOpening(t *testing.T, s *stateTest) {
	for range 20 {
		pod, opened := s.open(t).Pod(t), make(chan error, 1)
		go func() { opened <- pod.Open(t.Context(), plan(10)) }()
		for looking := true; looking; {
			select {
			case err := <-opened:
				ok(t, err)
				looking = false
			default:
			}
			_, err := pod.View(t.Context())
			ok(t, err)
		}
	}
}

func testClaimOrder(t *testing.T, s *stateTest) {
	s.start(t, 6)
	a := s.claim(t)
	same(t, "newest", a.Slot, at(5))
	b := s.claim(t, oldest)
	same(t, "oldest", b.Slot, at(0))
	same(t, "next newest", s.claim(t).Slot, at(4)) // held ones are passed over
	same(t, "next oldest", s.claim(t, oldest).Slot, at(1))
	s.finish(t, a, progress(3))
	s.finish(t, b, progress(3))
	same(t, "newest that is not finished", s.claim(t).Slot, at(3))
	same(t, "the last one", s.claim(t).Slot, at(2))
	s.none(t)
	s.none(t, oldest)
	same(t, "finished", s.view(t).Finished[migrate.Copying], []migrate.Span{slots(0, 1), slots(5, 6)})
	if a.Epoch == 0 || a.Token == "" || a.Token == b.Token || a.TTL != time.Minute || a.Pass != migrate.Copying {
		t.Errorf("claim %+v", a)
	}
	if left := time.Until(a.Deadline); left > time.Minute || left < 40*time.Second {
		t.Errorf("the claim of a minute may be used for %v", left)
	}
}

func testClaimWithin(t *testing.T, s *stateTest) {
	s.start(t, 6)
	same(t, "newest", s.claim(t, within(1, 3)).Slot, at(2))
	same(t, "oldest", s.claim(t, within(-50, 3), oldest).Slot, at(0))
	same(t, "rest", s.claim(t, within(0, 3)).Slot, at(1))
	s.none(t, within(0, 3))
	s.none(t, within(3, 3))
	s.none(t, within(4, 3))
	s.none(t, within(6, 100))
	s.none(t, within(-100, 0), oldest)
	sweep := func(r *migrate.ClaimRequest) { r.Pass = migrate.Sweeping }
	same(t, "swept", s.claim(t, sweep).Slot, at(5)) // passes do not know of each other
	same(t, "copied", s.claim(t).Slot, at(5))
	same(t, "swept", s.claim(t, sweep).Slot, at(4))
	s.none(t, sweep)
}

func testClaimStatus(t *testing.T, s *stateTest) {
	s.State = s.pod(t, plan(6))
	refused := func() {
		t.Helper()
		_, err := s.Claim(t.Context(), request())
		is(t, err, migrate.ErrWrongStatus)
	}
	refused()
	ok(t, s.Move(t.Context(), 0, migrate.NotStarted, migrate.ToStart))
	refused()
	ok(t, s.Move(t.Context(), 1, migrate.ToStart, migrate.InProgress))
	c := s.claim(t)
	ok(t, s.Move(t.Context(), 1, migrate.InProgress, migrate.ToStop))
	refused()
	s.finish(t, c, progress(1)) // who has a slot may come to an end
	ok(t, s.Move(t.Context(), 1, migrate.ToStop, migrate.Stopped))
	refused()
}

func testPartsFirst(t *testing.T, s *stateTest) {
	s.start(t, 6)
	low := s.claim(t, within(0, 2))
	c := s.claim(t)
	p, upper := s.split(t, c, progress(5), "m")
	p, lower := s.split(t, c, ending(progress(6), p.Lo), "q")
	_, part := s.split(t, low, progress(5), "b")
	same(t, "open parts", s.view(t).Open, []migrate.Slot{upper, lower, part})
	s.none(t, within(6, 8))
	same(t, "within", s.claim(t, within(0, 3)).Slot, part)
	a := s.claim(t)
	same(t, "the part split off first", a.Slot, upper)
	same(t, "where it begins", a.Progress, migrate.Progress{})
	b := s.claim(t)
	same(t, "the other part", b.Slot, lower)
	same(t, "where it ends", b.Progress, migrate.Progress{Lo: upper.Below})
	same(t, "whole slots last", s.claim(t).Slot, at(4))
	finished := func() []migrate.Span { return s.view(t).Finished[migrate.Copying] }
	s.finish(t, c, p)
	s.finish(t, b, ending(progress(2), upper.Below))
	same(t, "finished without one part", finished(), []migrate.Span{})
	same(t, "open parts", s.view(t).Open, []migrate.Slot{upper, part})
	same(t, "what is done is not claimed", s.claim(t).Slot, at(3))
	s.finish(t, a, progress(2))
	same(t, "finished with all parts", finished(), []migrate.Span{slots(5, 6)})
}

func testExpiry(t *testing.T, s *stateTest) {
	s.start(t, 1)
	sent := time.Now()
	c := s.claim(t, briefly)
	var d migrate.Claim
	await(t, "the claim to expire", func() (ok bool) {
		d, ok = s.try(t)
		return ok
	})
	if held := time.Since(sent); held < c.TTL-slack {
		t.Fatalf("a claim of %v was over after %v", c.TTL, held)
	}
	same(t, "slot", d.Slot, c.Slot)
	is(t, s.Renew(t.Context(), c), migrate.ErrNotHeld)
	same(t, "live", s.view(t).Live, []migrate.Held{{Pass: d.Pass, Slot: d.Slot, Worker: "pod 1/2", Epoch: d.Epoch}})
	t.Run("unless it is renewed", func(t *testing.T) {
		await(t, "a machine fast enough", func() bool {
			s := &stateTest{fixture: s.open(t)}
			s.start(t, 1)
			return s.renewed(t, s.claim(t, func(r *migrate.ClaimRequest) { r.TTL = 300 * time.Millisecond }))
		})
	})
}

// try claims, and reports whether there was a slot.
func (s *stateTest) try(t *testing.T) (migrate.Claim, bool) {
	t.Helper()
	c, err := s.Claim(t.Context(), request())
	if !errors.Is(err, migrate.ErrNoSlot) {
		ok(t, err)
	}
	return c, err == nil
}

// renewed renews c for longer than its time to live. It returns false when the
// machine stood still for so long that the claim expired.
func (s *stateTest) renewed(t *testing.T, c migrate.Claim) bool {
	begin := time.Now()
	last := begin
	for last.Sub(begin) < 3*c.TTL {
		sent := time.Now()
		err := s.Renew(t.Context(), c)
		_, taken := s.try(t)
		if now := time.Now(); now.Sub(last) >= c.TTL {
			return false
		}
		ok(t, err)
		same(t, "claimed by another", taken, false)
		last = sent
	}
	return true
}

// stale returns calls of a claim's owner.
func (s *stateTest) stale(ctx context.Context, c migrate.Claim) map[string]func() error {
	rest := migrate.Slot{Index: c.Slot.Index, Below: migrate.Key{"cut"}}
	return map[string]func() error{
		"renew":      func() error { return s.Renew(ctx, c) },
		"save":       func() error { _, err := s.Save(ctx, c, progress(100)); return err },
		"split":      func() error { return s.Split(ctx, c, ending(progress(100), rest.Below), rest, migrate.Progress{}) },
		"finish":     func() error { return s.Finish(ctx, c, progress(100), slots(0, 1)) },
		"release":    func() error { return s.Release(ctx, c) },
		"quarantine": func() error { return s.Quarantine(ctx, c, []migrate.Quarantined{{Key: migrate.Key{"k"}}}) },
	}
}

func testStaleClaims(t *testing.T, s *stateTest) {
	s.start(t, 3)
	old := s.claim(t, briefly)
	var now migrate.Claim
	await(t, "the claim to expire", func() bool {
		c, err := s.Claim(t.Context(), request())
		ok(t, err)
		now = c
		return c.Slot.Index == old.Slot.Index || s.Release(t.Context(), c) != nil
	})
	_, err := s.Save(t.Context(), now, progress(7))
	ok(t, err)
	forged, early := now, now
	forged.Token = old.Token
	early.Epoch = old.Epoch
	never := migrate.Claim{Pass: migrate.Copying, Slot: at(0), Token: "t", TTL: time.Minute}
	for who, c := range map[string]migrate.Claim{"expired": old, "with another token": forged, "with another epoch": early, "never claimed": never} {
		for op, call := range s.stale(t.Context(), c) {
			if err := call(); !errors.Is(err, migrate.ErrNotHeld) {
				t.Errorf("%s by one %s: %v, want ErrNotHeld", op, who, err)
			}
		}
	}
	v := s.view(t)
	same(t, "finished", v.Finished[migrate.Copying], []migrate.Span{})
	same(t, "counts", v.Counts, progress(7).Counts)
	same(t, "live", v.Live, []migrate.Held{{Pass: migrate.Copying, Slot: now.Slot, Worker: "pod 1/2", Epoch: now.Epoch, Counts: progress(7).Counts}})
	rows, err := s.Quarantined(t.Context(), "", 10)
	ok(t, err)
	same(t, "quarantine", rows, []migrate.Quarantined{})
	s.finish(t, now, progress(8))
}

func testEpochs(t *testing.T, s *stateTest) {
	s.start(t, 50)
	var last uint64
	grows := func(epoch uint64) {
		t.Helper()
		if epoch <= last {
			t.Fatalf("epoch %d after %d", epoch, last)
		}
		last = epoch
	}
	for i := range 20 {
		c := s.claim(t)
		grows(c.Epoch)
		if i%3 == 0 {
			ok(t, s.Release(t.Context(), c))
		}
		term, err := s.Lead(t.Context(), fmt.Sprint(i), time.Minute)
		ok(t, err)
		grows(term.Epoch)
		ok(t, s.Resign(t.Context(), term))
	}
}

func testConcurrentClaims(t *testing.T, s *stateTest) {
	s.start(t, 200)
	pods := []migrate.State{s.State, s.pod(t, plan(200)), s.pod(t, plan(200)), s.pod(t, plan(200))}
	var mu sync.Mutex
	taken, epochs := map[int64]bool{}, map[uint64]bool{}
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			for {
				c, err := pods[i%4].Claim(t.Context(), request())
				if errors.Is(err, migrate.ErrNoSlot) {
					return
				}
				if err == nil && i%2 == 0 {
					err = pods[i%4].Finish(t.Context(), c, progress(1), migrate.Span{})
				}
				mu.Lock()
				if err != nil || taken[c.Slot.Index] || epochs[c.Epoch] {
					t.Errorf("claim %+v, %v: taken %v, epoch used %v", c, err, taken[c.Slot.Index], epochs[c.Epoch])
				}
				taken[c.Slot.Index], epochs[c.Epoch] = true, true
				mu.Unlock()
			}
		})
	}
	group.Wait()
	same(t, "slots", len(taken), 200)
}
