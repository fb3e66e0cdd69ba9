package migtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tallystick/tallystick/migrate"
)

// StateAxis is the axis by which states under test name slots.
var StateAxis = migrate.Axis{By: migrate.ByULID, Width: time.Hour.Milliseconds()}

// A StateFixture is a state under test in which nothing was opened yet.
type StateFixture struct {
	Pod    func(t testing.TB) migrate.State // the state as one more pod sees it, not open yet
	Lose   func(t testing.TB)               // empties it, as FLUSHALL does
	Backup func(t testing.TB) (restore func())
}

// TestState runs the conformance suite: every method and error of
// [migrate.State]. open returns another state each time. What expires is
// waited for in real time, with short times to live.
func TestState(t *testing.T, open func(t testing.TB) StateFixture) {
	for _, group := range []struct {
		name string
		test func(*testing.T, *stateTest)
	}{
		{"the first plan stays", testPlan},
		{"it can be looked at while it is opened", testLookWhileOpening},
		{"claims come in the order of the walk", testClaimOrder},
		{"claims stay within spans", testClaimWithin},
		{"claims need the status", testClaimStatus},
		{"parts come first", testPartsFirst},
		{"a claim expires", testExpiry},
		{"a stale claim writes nothing", testStaleClaims},
		{"epochs grow", testEpochs},
		{"progress only advances", testProgress},
		{"calls can be repeated", testRepeats},
		{"totals count once", testTotals},
		{"release frees", testRelease},
		{"an idle worker is heard", testWant},
		{"finished slots add up", testFinishModel},
		{"nobody shares a slot", testConcurrentClaims},
		{"status edges", testEdges},
		{"stopped and finished have conditions", testConditions},
		{"one keeper", testKeeper},
		{"the first survey stays", testSurvey},
		{"phases", testPhases},
		{"ledger", testLedger},
		{"quarantine", testQuarantine},
		{"set aside by the keeper", testAside},
		{"what no slot tells", testTally},
		{"verdict", testVerdict},
		{"the mark of a verification", testMarks},
		{"reset", testReset},
		{"a lost state stops everybody", testLost},
	} {
		t.Run(group.name, func(t *testing.T) { group.test(t, &stateTest{fixture: open(t), open: open}) })
	}
}

// A stateTest is a state and how to look at it.
type stateTest struct {
	fixture StateFixture
	open    func(testing.TB) StateFixture
	migrate.State
}

// first is where the slots of the suite's plans begin.
const first = 480_306 // 20241020.18

// at returns slot first+i.
func at(i int64) migrate.Slot { return migrate.Slot{Index: first + i} }

// slots returns slots first+lo to first+hi.
func slots(lo, hi int64) migrate.Span { return migrate.Span{Lo: first + lo, Hi: first + hi} }

// plan returns a plan with n slots, of which the newest two are swept.
func plan(n int64) migrate.PlanRecord {
	return migrate.PlanRecord{Name: "events", Hash: "h1", Text: "name: events\nworkers: 8\n", Slots: slots(0, n), Sweep: slots(max(0, n-2), n), Rows: 1 << 40}
}

// pod opens one more pod.
func (s *stateTest) pod(t testing.TB, p migrate.PlanRecord) migrate.State {
	t.Helper()
	pod := s.fixture.Pod(t)
	ok(t, pod.Open(t.Context(), p))
	return pod
}

// start opens the state with a plan of n slots and starts it.
func (s *stateTest) start(t testing.TB, n int64) {
	t.Helper()
	s.State = s.pod(t, plan(n))
	ok(t, s.Move(t.Context(), 0, migrate.NotStarted, migrate.ToStart))
	ok(t, s.Move(t.Context(), 1, migrate.ToStart, migrate.InProgress))
}

// request returns one for any slot, newest first, that is not to expire.
func request() migrate.ClaimRequest {
	return migrate.ClaimRequest{Pass: migrate.Copying, Worker: "pod 1/2", TTL: time.Minute, Within: slots(-1000, 1000)}
}

// claim claims by the request that edit made of the usual one.
func (s *stateTest) claim(t testing.TB, edit ...func(*migrate.ClaimRequest)) migrate.Claim {
	t.Helper()
	req := request()
	for _, f := range edit {
		f(&req)
	}
	c, err := s.Claim(t.Context(), req)
	ok(t, err)
	return c
}

// within restricts a request to slots lo to hi.
func within(lo, hi int64) func(*migrate.ClaimRequest) {
	return func(r *migrate.ClaimRequest) { r.Within = slots(lo, hi) }
}

func oldest(r *migrate.ClaimRequest) { r.Oldest = true }

// briefly makes a claim expire soon.
func briefly(r *migrate.ClaimRequest) { r.TTL = 60 * time.Millisecond }

// none fails the test if there is a slot to claim.
func (s *stateTest) none(t testing.TB, edit ...func(*migrate.ClaimRequest)) {
	t.Helper()
	req := request()
	for _, f := range edit {
		f(&req)
	}
	c, err := s.Claim(t.Context(), req)
	if !errors.Is(err, migrate.ErrNoSlot) {
		t.Fatalf("claimed %+v, %v, want ErrNoSlot", c, err)
	}
}

// view returns a view without what differs from one to the next.
func (s *stateTest) view(t testing.TB) migrate.View {
	t.Helper()
	v, err := s.View(t.Context())
	ok(t, err)
	return v
}

// progress returns one after n rows.
func progress(n int64) migrate.Progress {
	return migrate.Progress{Last: migrate.Key{fmt.Sprintf("row~%d", 1_000_000-n), "tie +%"},
		Counts: migrate.Counts{Read: n, Bytes: n << 30, Written: n - 1, AlreadyNewer: 2 * n, AlreadyOurs: 3 * n, Quarantined: 1},
		Digest: migrate.Digest{Hi: 1<<63 + uint64(n), Lo: 1<<53 + 1}}
}

// ending returns p for a slot that ends at lo.
func ending(p migrate.Progress, lo migrate.Key) migrate.Progress {
	p.Lo = lo
	return p
}

// split cuts c at a key and returns what is left.
func (s *stateTest) split(t testing.TB, c migrate.Claim, p migrate.Progress, key string) (migrate.Progress, migrate.Slot) {
	t.Helper()
	rest, begin := migrate.Slot{Index: c.Slot.Index, Below: migrate.Key{key, "~"}}, migrate.Progress{Lo: p.Lo}
	p.Lo = rest.Below
	ok(t, s.Split(t.Context(), c, p, rest, begin))
	return p, rest
}

// finish finishes c alone.
func (s *stateTest) finish(t testing.TB, c migrate.Claim, p migrate.Progress) {
	t.Helper()
	ok(t, s.Finish(t.Context(), c, p, migrate.Span{}))
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is fails the test unless err matches want.
func is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error = %v, want one that is %v", err, want)
	}
}

// same fails the test unless got is want. None and an empty list are the same.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(time.Second)); d != "" {
		t.Fatalf("%s differs (-want +got):\n%s", what, d)
	}
}

// await returns once done returns true.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	limit := time.After(30 * time.Second)
	for !done() {
		select {
		case <-ticker.C:
		case <-limit:
			t.Fatalf("waited too long for %s", what)
		}
	}
}
