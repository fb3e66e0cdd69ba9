package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// lease asks svc for n values and returns the result, which may be an error.
func lease(t testing.TB, svc sequence.Leaser, item sequence.LeaseItem) sequence.LeaseResult {
	t.Helper()
	resp, err := svc.Lease(t.Context(), sequence.LeaseRequest{Items: []sequence.LeaseItem{item}})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Results[0]
}

// mustLease is lease where an error is a failure.
func mustLease(t testing.TB, svc sequence.Leaser, item sequence.LeaseItem) sequence.LeaseResult {
	t.Helper()
	r := lease(t, svc, item)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return r
}

func values(r sequence.LeaseResult) []int64 {
	var v []int64
	for _, run := range r.Runs {
		for i := range run.Count {
			v = append(v, run.At(i))
		}
	}
	return v
}

func newService(t testing.TB, store sequence.Store) *sequence.Service {
	svc := sequence.NewService(store, sequence.ServiceOptions{})
	t.Cleanup(func() { svc.Close(context.Background()) })
	return svc
}

func TestFloorGrantsOnlyBeyondIt(t *testing.T) {
	store := seqtest.NewMemory()
	a, b := newService(t, store), newService(t, store)
	create(t, a, sequence.Spec{Name: "s"})
	mustLease(t, a, sequence.LeaseItem{Name: "s", Count: 10})              // a holds 11..1000
	last := mustLease(t, b, sequence.LeaseItem{Name: "s", Count: 10})      // b holds 1011..2000
	floor := &sequence.Floor{Epoch: last.Epoch, Last: last.Runs[0].Last()} // 1010
	r := mustLease(t, a, sequence.LeaseItem{Name: "s", Count: 10, Floor: floor})
	if got := r.Runs[0].First; got != 2001 {
		t.Errorf("granted from %d, want a fresh block from 2001", got)
	}
	// What the floor skipped is left for clients without one.
	if r := mustLease(t, a, sequence.LeaseItem{Name: "s", Count: 10}); r.Runs[0].First != 11 {
		t.Errorf("granted from %d, want the left-over from 11", r.Runs[0].First)
	}
	// A floor inside the left-over grants its end.
	floor.Last = 500
	if r := mustLease(t, a, sequence.LeaseItem{Name: "s", Count: 1, Floor: floor}); r.Runs[0].First != 501 {
		t.Errorf("granted from %d, want 501", r.Runs[0].First)
	}
}

func TestFloorAheadOfTheCounterMovesNothing(t *testing.T) {
	for _, inc := range []int64{1, -1} {
		store := seqtest.NewMemory()
		svc := newService(t, store)
		create(t, svc, sequence.Spec{Name: "s", Increment: new(inc)})
		first := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 1})
		before, _ := store.Load(t.Context(), "s")
		for _, ahead := range []int64{before.Next, before.Next + 1000*inc, math.MaxInt64 * inc} {
			r := lease(t, svc, sequence.LeaseItem{Name: "s", Count: 1, Floor: &sequence.Floor{Epoch: first.Epoch, Last: ahead}})
			if r.Err == nil || r.Err.Code != sequence.CodeInvalid || r.Err.Field != "floor" {
				t.Errorf("floor %d: %v, want INVALID_ARGUMENT of floor", ahead, r.Err)
			}
		}
		if after, _ := store.Load(t.Context(), "s"); after.Next != before.Next {
			t.Errorf("counter moved from %d to %d", before.Next, after.Next)
		}
		// Another epoch in the floor is ignored.
		r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 1, Floor: &sequence.Floor{Epoch: 99, Last: 1 << 40}})
		if want := first.Runs[0].First + inc; r.Runs[0].First != want {
			t.Errorf("with a floor of another epoch: %d, want %d", r.Runs[0].First, want)
		}
	}
}

func TestBadLeaseNamesTheField(t *testing.T) {
	svc := newService(t, seqtest.NewMemory())
	create(t, svc, sequence.Spec{Name: "s"})
	for _, c := range []struct {
		item  sequence.LeaseItem
		code  sequence.Code
		field string
	}{
		{sequence.LeaseItem{Name: "s", Count: 0}, sequence.CodeInvalid, "count"},
		{sequence.LeaseItem{Name: "s", Count: -1}, sequence.CodeInvalid, "count"},
		{sequence.LeaseItem{Name: "s", Count: 1_000_000_000}, sequence.CodeInvalid, "count"},
		{sequence.LeaseItem{Name: "", Count: 1}, sequence.CodeInvalid, "name"},
		{sequence.LeaseItem{Name: "a\x00b", Count: 1}, sequence.CodeInvalid, "name"},
		{sequence.LeaseItem{Name: "nobody", Count: 1}, sequence.CodeNotFound, "name"},
	} {
		r := lease(t, svc, c.item)
		if r.Err == nil || r.Err.Code != c.code || r.Err.Field != c.field {
			t.Errorf("%+v: %v, want %s of %s", c.item, r.Err, c.code, c.field)
		}
	}
	if n := svc.Stats().Sequences; n != 0 {
		t.Errorf("%d sequences cached although none was granted", n)
	}
}

// TestLostRepliesNeverRepeat drives every step of the protocol through lost
// requests, lost replies and late writes, and checks what was granted.
func TestLostRepliesNeverRepeat(t *testing.T) {
	faults := map[string]seqtest.Fault{"request": seqtest.LostRequest, "reply": seqtest.LostReply, "late": seqtest.LateWrite}
	definitions := map[string]sequence.Spec{
		"ascending":  {Name: "s"},
		"descending": {Name: "s", Increment: new(int64(-7))},
		"small":      {Name: "s", Max: new(int64(3000))},
		"cycle":      {Name: "s", Max: new(int64(700)), Cycle: new(true)},
	}
	for what, fault := range faults {
		for which, spec := range definitions {
			for _, op := range []seqtest.Op{seqtest.OpAdvance, seqtest.OpSwap, seqtest.OpLoad} {
				t.Run(fmt.Sprintf("%s/%s/%s", what, op, which), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { lostReplies(t, spec, op, fault) })
				})
			}
		}
	}
}

func lostReplies(t *testing.T, spec sequence.Spec, op seqtest.Op, fault seqtest.Fault) {
	store := seqtest.NewFaulty(seqtest.NewMemory())
	a, b := newService(t, store), newService(t, store)
	create(t, a, spec)
	type key struct {
		epoch uint64
		value int64
	}
	seen := make(map[key]bool)
	for i := range 60 {
		if i%5 == 2 {
			store.Plan(seqtest.Once(op, fault))
		}
		if i%5 == 4 {
			store.Flush() // late writes land after others have gone on
		}
		r := lease(t, []*sequence.Service{a, b}[i%2], sequence.LeaseItem{Name: "s", Count: int64(1 + i*13%400)})
		if r.Err != nil {
			if r.Err.Code != sequence.CodeUnavailable && r.Err.Code != sequence.CodeExhausted {
				t.Fatal(r.Err)
			}
			time.Sleep(2 * time.Second)
			continue
		}
		for _, v := range values(r) {
			if k := (key{r.Epoch, v}); seen[k] {
				t.Fatalf("value %d of epoch %d granted twice", v, r.Epoch)
			} else {
				seen[k] = true
			}
		}
	}
	if len(seen) < 700 {
		t.Errorf("only %d values granted", len(seen))
	}
}

func TestReturnIsTakenOnce(t *testing.T) {
	svc, other := newService(t, seqtest.NewMemory()), newService(t, seqtest.NewMemory())
	create(t, svc, sequence.Spec{Name: "s"})
	create(t, other, sequence.Spec{Name: "s"})
	r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10})
	give := sequence.ReturnRequest{Name: "s", LeaseID: r.LeaseID, From: 4, Count: 6}
	for range 3 {
		if err := svc.Return(t.Context(), give); err != nil {
			t.Fatal(err)
		}
	}
	if r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10}); r.Runs[0].First != 5 || len(r.Runs) != 1 {
		t.Errorf("granted %v, want 5..14", r.Runs)
	}
	if err := other.Return(t.Context(), give); !errors.Is(err, sequence.ErrPrecondition) {
		t.Errorf("return to another server: %v", err)
	}
	if n := other.Stats().Burned[sequence.BurnedReturn]; n != 6 {
		t.Errorf("%d values counted as burned, want 6", n)
	}
	give.LeaseID += "x"
	if err := svc.Return(t.Context(), give); !errors.Is(err, sequence.ErrPrecondition) {
		t.Errorf("return of an unknown lease: %v", err)
	}
	give.LeaseID, give.From = r.LeaseID, -1
	if err := svc.Return(t.Context(), give); !errors.Is(err, sequence.ErrInvalid) {
		t.Errorf("return from position -1: %v", err)
	}
}

func TestGiveBackNeedsTheNewestWrite(t *testing.T) {
	store := seqtest.NewMemory()
	a, b := newService(t, store), newService(t, store)
	create(t, a, sequence.Spec{Name: "s"})
	mustLease(t, a, sequence.LeaseItem{Name: "s", Count: 10})
	mustLease(t, b, sequence.LeaseItem{Name: "s", Count: 10})
	a.Close(t.Context())
	if n := a.Stats().Burned[sequence.BurnedLeftOver]; n != 990 {
		t.Errorf("burned %d, want 990: another server has gone on", n)
	}
	b.Close(t.Context())
	if st := b.Stats(); st.GivenBack != 990 || st.Burned[sequence.BurnedLeftOver] != 0 {
		t.Errorf("gave back %d, burned %d", st.GivenBack, st.Burned[sequence.BurnedLeftOver])
	}
	if r, _ := store.Load(t.Context(), "s"); r.Next != 1011 || r.GiveBacks != 1 {
		t.Errorf("next %d after %d give-backs", r.Next, r.GiveBacks)
	}
	// The end of an exhausted sequence can be given back too.
	create(t, newService(t, store), sequence.Spec{Name: "short", Max: new(int64(20))})
	for want := range int64(4) {
		svc := sequence.NewService(store, sequence.ServiceOptions{})
		r := mustLease(t, svc, sequence.LeaseItem{Name: "short", Count: 20})
		if r.Runs[0].First != 1+5*want {
			t.Errorf("round %d begins at %d", want, r.Runs[0].First)
		}
		if err := svc.Return(t.Context(), sequence.ReturnRequest{Name: "short", LeaseID: r.LeaseID, From: 5, Count: r.Count() - 5}); err != nil {
			t.Fatal(err)
		}
		svc.Close(t.Context())
	}
}

func TestStoppingServerRefusesLeases(t *testing.T) {
	svc := newService(t, seqtest.NewMemory())
	create(t, svc, sequence.Spec{Name: "s"})
	r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 1})
	svc.Close(t.Context())
	_, err := svc.Lease(t.Context(), sequence.LeaseRequest{Items: []sequence.LeaseItem{{Name: "s", Count: 1}}})
	if !errors.Is(err, sequence.ErrUnavailable) || !errors.Is(err, sequence.ErrClosed) {
		t.Errorf("lease after Close: %v", err)
	}
	if err := svc.Return(t.Context(), sequence.ReturnRequest{Name: "s", LeaseID: r.LeaseID, Count: 1}); !errors.Is(err, sequence.ErrPrecondition) {
		t.Errorf("return after Close: %v", err)
	}
	if n := svc.Stats().Burned[sequence.BurnedReturn]; n != 1 {
		t.Errorf("%d values counted as burned by a late return, want 1", n)
	}
}

func TestCounterMovedBackStopsTheSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := seqtest.NewMemory()
		svc := newService(t, store)
		create(t, svc, sequence.Spec{Name: "s"})
		backup := store.Snapshot()
		for range 5 {
			mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 1000})
		}
		synctest.Wait()
		store.Restore(backup)
		var got *sequence.Error
		for range 10 {
			if r := lease(t, svc, sequence.LeaseItem{Name: "s", Count: sequence.MaxLeaseCount}); r.Err != nil {
				got = r.Err
				break
			} else if r.Runs[0].First < 5001 {
				t.Fatalf("granted %v again", r.Runs)
			}
		}
		if got == nil || got.Code != sequence.CodePrecondition {
			t.Errorf("error %v, want FAILED_PRECONDITION", got)
		}
	})
}

func TestStoreAwayIsServedFromCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := seqtest.NewFaulty(seqtest.NewMemory())
		svc := newService(t, store)
		create(t, svc, sequence.Spec{Name: "s"})
		mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 100})
		store.Plan(seqtest.Always(seqtest.Fault{Delay: 2 * time.Second, Refuse: sequence.ErrUnavailable}))
		start := time.Now()
		for range 9 {
			if r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 100}); r.Count() != 100 {
				t.Errorf("granted %d", r.Count())
			}
		}
		if waited := time.Since(start); waited > 0 {
			t.Errorf("cached values took %v", waited)
		}
		if r := lease(t, svc, sequence.LeaseItem{Name: "s", Count: 100}); r.Err == nil || r.Err.Code != sequence.CodeUnavailable {
			t.Errorf("lease beyond the cache: %v", r.Err)
		}
		store.Plan(nil)
		time.Sleep(2 * time.Second)
		if r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 100}); r.Runs[0].First != 1001 {
			t.Errorf("granted from %d after the outage", r.Runs[0].First)
		}
	})
}

func TestPanicOfTheStoreIsContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := seqtest.NewFaulty(seqtest.NewMemory())
		svc := newService(t, store)
		create(t, svc, sequence.Spec{Name: "s"})
		store.Plan(func(seqtest.Call) seqtest.Fault { panic("boom") })
		if r := lease(t, svc, sequence.LeaseItem{Name: "s", Count: 1}); r.Err == nil || r.Err.Code != sequence.CodeInternal {
			t.Errorf("error %v", r.Err)
		}
		store.Plan(nil)
		time.Sleep(2 * time.Second)
		mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 1})
	})
}

func TestDeletedSequenceContinuesWhenCreatedAgain(t *testing.T) {
	svc := newService(t, seqtest.NewMemory())
	create(t, svc, sequence.Spec{Name: "s", Increment: new(int64(5))})
	r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10})
	if err := svc.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Get(t.Context(), "s"); !errors.Is(err, sequence.ErrNotFound) {
		t.Errorf("get of a deleted sequence: %v", err)
	}
	if r := lease(t, svc, sequence.LeaseItem{Name: "s", Count: 1}); !errors.Is(r.Err, sequence.ErrNotFound) {
		t.Errorf("lease of a deleted sequence: %v", r.Err)
	}
	if err := svc.Delete(t.Context(), "s"); !errors.Is(err, sequence.ErrNotFound) {
		t.Errorf("delete of a deleted sequence: %v", err)
	}
	again := create(t, svc, sequence.Spec{Name: "s", Increment: new(int64(10))})
	if again.Epoch != 2 || again.Next <= r.Runs[0].Last() || again.Next%10 != 1 {
		t.Errorf("created again with next %d in epoch %d", again.Next, again.Epoch)
	}
	res, err := svc.Create(t.Context(), sequence.CreateRequest{Specs: []sequence.Spec{{Name: "s"}}})
	if err != nil || !errors.Is(res[0].Err, sequence.ErrExists) {
		t.Errorf("create of an existing name: %v, %v", res, err)
	}
}

func TestDirectionAndRestartNeedReuse(t *testing.T) {
	svc := newService(t, seqtest.NewMemory())
	create(t, svc, sequence.Spec{Name: "s", Min: new(int64(-1000))})
	mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10})
	back := sequence.RestartRequest{Name: "s"}
	if _, err := svc.Restart(t.Context(), back); !errors.Is(err, sequence.ErrPrecondition) {
		t.Errorf("restart back: %v", err)
	}
	turn := sequence.AlterRequest{Spec: sequence.Spec{Name: "s", Increment: new(int64(-1))}}
	if _, err := svc.Alter(t.Context(), turn); !errors.Is(err, sequence.ErrPrecondition) {
		t.Errorf("alter of the direction: %v", err)
	}
	back.ReuseValues = true
	r, err := svc.Restart(t.Context(), back)
	if err != nil || r.Epoch != 2 || r.Next != -1000 {
		t.Errorf("restart with reuse: %+v, %v", r, err)
	}
	if got := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 3}); !slices.Equal(values(got), []int64{-1000, -999, -998}) {
		t.Errorf("granted %v after the restart", values(got))
	}
	forward := sequence.RestartRequest{Name: "s", With: new(int64(100_000))}
	if r, err := svc.Restart(t.Context(), forward); err != nil || r.Epoch != 2 {
		t.Errorf("restart forward: %+v, %v", r, err)
	}
	if got := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 1}); got.Runs[0].First != 100_000 {
		t.Errorf("granted %v after the restart forward", values(got))
	}
}

func TestAlterKeepsTheCounterWithinBounds(t *testing.T) {
	svc := newService(t, seqtest.NewMemory())
	create(t, svc, sequence.Spec{Name: "s", Max: new(int64(100))})
	mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 100})
	_, err := svc.Alter(t.Context(), sequence.AlterRequest{Spec: sequence.Spec{Name: "s", Max: new(int64(50))}})
	if !errors.Is(err, sequence.ErrPrecondition) {
		t.Errorf("max below the counter: %v", err)
	}
	r, err := svc.Alter(t.Context(), sequence.AlterRequest{IfVersion: 1, Spec: sequence.Spec{Name: "s", Max: new(int64(200)), Increment: new(int64(10))}})
	if err != nil || r.Exhausted || r.Next != 110 {
		t.Errorf("raised max: %+v, %v", r, err)
	}
	if _, err := svc.Alter(t.Context(), sequence.AlterRequest{IfVersion: 1, Spec: sequence.Spec{Name: "s"}}); !errors.Is(err, sequence.ErrConflict) {
		t.Errorf("alter of an old version: %v", err)
	}
	if got := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 100}); got.Runs[0].First != 110 || got.Runs[0].Last() != 200 {
		t.Errorf("granted %v", got.Runs)
	}
}

func TestListPages(t *testing.T) {
	svc := newService(t, seqtest.NewMemory())
	var specs []sequence.Spec
	for i := range 250 {
		specs = append(specs, sequence.Spec{Name: fmt.Sprintf("a%03d", i)}, sequence.Spec{Name: fmt.Sprintf("b%03d", i)})
	}
	if _, err := svc.Create(t.Context(), sequence.CreateRequest{Specs: specs}); err != nil {
		t.Fatal(err)
	}
	svc.Delete(t.Context(), "b007")
	names := make(map[string]bool)
	pages, token := 0, ""
	for {
		resp, err := svc.List(t.Context(), sequence.ListRequest{Prefix: "b", PageSize: 100, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range resp.Records {
			names[r.Definition.Name] = true
		}
		pages++
		if token = resp.NextPageToken; token == "" {
			break
		}
	}
	if len(names) != 249 || pages != 3 || names["b007"] || !names["b008"] {
		t.Errorf("%d names on %d pages", len(names), pages)
	}
	for _, bad := range []sequence.ListRequest{{PageSize: -1}, {PageSize: 1001}, {PageToken: "x"}} {
		if _, err := svc.List(t.Context(), bad); !errors.Is(err, sequence.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestLeaseEndsWithItsContextWhileTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := seqtest.NewFaulty(seqtest.NewMemory())
		svc := newService(t, store)
		create(t, svc, sequence.Spec{Name: "s"})
		store.Plan(seqtest.Always(seqtest.Fault{Delay: time.Second}))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		resp, err := svc.Lease(ctx, sequence.LeaseRequest{Items: []sequence.LeaseItem{{Name: "s", Count: 10}}})
		if err != nil || !errors.Is(resp.Results[0].Err, sequence.ErrUnavailable) || !errors.Is(resp.Results[0].Err, context.DeadlineExceeded) {
			t.Errorf("lease: %v, %v", resp.Results, err)
		}
		time.Sleep(5 * time.Second)
		// The block that it waited for is there for others.
		store.Plan(seqtest.Always(seqtest.CutOff))
		if r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10}); r.Runs[0].First != 1 {
			t.Errorf("granted %v", r.Runs)
		}
		if n := svc.Stats().Granted; n != 10 {
			t.Errorf("%d values counted as granted, want 10", n)
		}
	})
}

func TestServiceOfAnotherStoreRefusesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := seqtest.NewFaulty(seqtest.NewMemory())
		svc := sequence.NewService(store, sequence.ServiceOptions{})
		create(t, svc, sequence.Spec{Name: "s"})
		mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10})
		ended := make(chan error, 1)
		go func() { ended <- svc.Run(t.Context()) }()
		time.Sleep(3 * time.Second)
		if err := svc.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		store.Plan(seqtest.On(seqtest.OpGeneration, seqtest.Fault{Refuse: sequence.ErrPrecondition}))
		if err := <-ended; !errors.Is(err, sequence.ErrPrecondition) {
			t.Errorf("Run: %v", err)
		}
		before, _ := store.Load(t.Context(), "s")
		_, leased := svc.Lease(t.Context(), sequence.LeaseRequest{Items: []sequence.LeaseItem{{Name: "s", Count: 10}}})
		_, created := svc.Create(t.Context(), sequence.CreateRequest{Specs: []sequence.Spec{{Name: "new"}}})
		_, altered := svc.Alter(t.Context(), sequence.AlterRequest{Spec: sequence.Spec{Name: "s", Owner: new("us")}})
		_, restarted := svc.Restart(t.Context(), sequence.RestartRequest{Name: "s", With: new(int64(5000))})
		for what, err := range map[string]error{
			"ready": svc.Ready(), "lease": leased, "create": created, "alter": altered, "restart": restarted,
			"delete": svc.Delete(t.Context(), "s"),
		} {
			if !errors.Is(err, sequence.ErrPrecondition) {
				t.Errorf("%s: %v, want ErrPrecondition", what, err)
			}
		}
		after, _ := store.Load(t.Context(), "s")
		if _, err := store.Load(t.Context(), "new"); after.Nonce != before.Nonce || !errors.Is(err, sequence.ErrNotFound) {
			t.Error("the store was written to")
		}
		svc.Close(t.Context())
	})
}

func TestClosedServiceIsNotReady(t *testing.T) {
	svc := newService(t, seqtest.NewMemory())
	if err := svc.Ready(); err != nil {
		t.Errorf("before: %v", err)
	}
	svc.Close(t.Context())
	if err := svc.Ready(); !errors.Is(err, sequence.ErrClosed) {
		t.Errorf("after: %v, want ErrClosed", err)
	}
}
