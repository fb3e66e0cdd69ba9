package sequence_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// storeTime is what each request of slowly takes.
const storeTime = 100 * time.Millisecond

// slowly runs test under fake time, with a sequence "s" in a store that takes
// storeTime for each request.
func slowly(t *testing.T, test func(t *testing.T, svc *sequence.Service, store *seqtest.Faulty)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := seqtest.NewFaulty(seqtest.NewMemory())
		svc := newService(t, store)
		create(t, svc, sequence.Spec{Name: "s"})
		store.Plan(seqtest.Always(seqtest.Fault{Delay: storeTime}))
		test(t, svc, store)
	})
}

// ask leases from "s" in the background, behind whoever asked before.
func ask(ctx context.Context, svc *sequence.Service, count int64, floor *sequence.Floor) <-chan sequence.LeaseResult {
	answer := make(chan sequence.LeaseResult, 1)
	go func() {
		resp, err := svc.Lease(ctx, sequence.LeaseRequest{Items: []sequence.LeaseItem{{Name: "s", Count: count, Floor: floor}}})
		if err != nil {
			panic(err)
		}
		answer <- resp.Results[0]
	}()
	synctest.Wait()
	return answer
}

// granted fails the test unless answer is the count values from first on.
func granted(t *testing.T, answer <-chan sequence.LeaseResult, first, count int64) {
	t.Helper()
	if r := <-answer; r.Err != nil {
		t.Errorf("no values from %d: %v", first, r.Err)
	} else if r.Runs[0].First != first || r.Count() != count {
		t.Errorf("granted %v, want %d values from %d", r.Runs, count, first)
	}
}

func TestWaitersAreServedInTheOrderTheyCame(t *testing.T) {
	slowly(t, func(t *testing.T, svc *sequence.Service, _ *seqtest.Faulty) {
		var answers []<-chan sequence.LeaseResult
		for range 5 {
			answers = append(answers, ask(t.Context(), svc, 100, nil))
		}
		for i, answer := range answers {
			granted(t, answer, int64(1+100*i), 100)
		}
	})
}

// TestLateWaiterGetsNoCrumbs: one that came after a block was sized does not
// take what that block has left, but waits for one of its own.
func TestLateWaiterGetsNoCrumbs(t *testing.T) {
	slowly(t, func(t *testing.T, svc *sequence.Service, _ *seqtest.Faulty) {
		first := ask(t.Context(), svc, 10, nil)
		time.Sleep(storeTime + storeTime/2) // the record is read, the block under way
		late := ask(t.Context(), svc, 5000, nil)
		granted(t, first, 1, 10)
		granted(t, late, 11, 5000)
	})
}

// TestBigLeaseWaitsForABlock: it gets all at once, instead of the little that
// is there; but while the store is known to be away, what is there.
func TestBigLeaseWaitsForABlock(t *testing.T) {
	slowly(t, func(t *testing.T, svc *sequence.Service, store *seqtest.Faulty) {
		granted(t, ask(t.Context(), svc, 10, nil), 1, 10)
		granted(t, ask(t.Context(), svc, 5000, nil), 11, 5000)
		left := svc.Stats().Cached
		store.Plan(seqtest.Always(seqtest.Fault{Delay: time.Hour})) // silent
		granted(t, ask(t.Context(), svc, left-50, nil), 5011, left-50)
		time.Sleep(5500 * time.Millisecond) // the refill that this began has failed
		if n := svc.Stats().RefillsFailed; n != 1 {
			t.Errorf("%d refills failed, want 1", n)
		}
		begin := time.Now()
		granted(t, ask(t.Context(), svc, 100_000, nil), 4961+left, 50)
		if waited := time.Since(begin); waited > 0 {
			t.Errorf("it waited %v for a store that was away", waited)
		}
	})
}

// TestLeaseTakesOneBlockAtMost: what the lap has left is not topped up from
// the next one.
func TestLeaseTakesOneBlockAtMost(t *testing.T) {
	store := seqtest.NewMemory()
	svc := newService(t, store)
	create(t, svc, sequence.Spec{Name: "s", Max: new(int64(50)), Cycle: new(true)})
	if r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 100}); r.Count() != 50 || r.Epoch != 1 {
		t.Errorf("granted %v of epoch %d", r.Runs, r.Epoch)
	}
	if r, err := store.Load(t.Context(), "s"); err != nil || !r.Exhausted || r.Epoch != 1 {
		t.Errorf("the store is at %+v, %v, want the end of the first lap", r, err)
	}
}

// TestStoppedSequenceLeavesTheStoreAlone: each try would burn a block.
func TestStoppedSequenceLeavesTheStoreAlone(t *testing.T) {
	store := seqtest.NewMemory()
	svc := newService(t, store)
	create(t, svc, sequence.Spec{Name: "s"})
	backup := store.Snapshot()
	mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 1000})
	store.Restore(backup)
	var before sequence.Record
	for n := range 3 {
		if r := lease(t, svc, sequence.LeaseItem{Name: "s", Count: sequence.MaxLeaseCount}); !errors.Is(r.Err, sequence.ErrPrecondition) {
			t.Fatalf("lease %d: %+v", n, r)
		}
		now, err := store.Load(t.Context(), "s")
		if err != nil || n > 0 && now.Nonce != before.Nonce {
			t.Errorf("after lease %d the counter is at %d, it was at %d; %v", n, now.Next, before.Next, err)
		}
		before = now
	}
}

func TestCancelLeavesTheOtherWaitersServed(t *testing.T) {
	slowly(t, func(t *testing.T, svc *sequence.Service, _ *seqtest.Faulty) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first := ask(t.Context(), svc, 10, nil)
		middle := ask(ctx, svc, 10, nil)
		last := ask(t.Context(), svc, 10, nil)
		cancel()
		if r := <-middle; !errors.Is(r.Err, context.Canceled) || !errors.Is(r.Err, sequence.ErrUnavailable) {
			t.Errorf("the one that gave up: %+v", r)
		}
		granted(t, first, 1, 10)
		granted(t, last, 11, 10)
	})
}

func TestBadFloorRefusesItsOwnLeaseOnly(t *testing.T) {
	bad := &sequence.Floor{Epoch: 1, Last: 1 << 40}
	slowly(t, func(t *testing.T, svc *sequence.Service, _ *seqtest.Faulty) {
		first, other := ask(t.Context(), svc, 10, bad), ask(t.Context(), svc, 10, nil)
		if r := <-first; !errors.Is(r.Err, sequence.ErrInvalid) || r.Err.Field != "floor" {
			t.Errorf("the bad floor: %+v", r)
		}
		granted(t, other, 1, 10)
	})
	// Nor is another refused when the one with the bad floor has left.
	slowly(t, func(t *testing.T, svc *sequence.Service, _ *seqtest.Faulty) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ask(ctx, svc, 10, bad)
		time.Sleep(storeTime + storeTime/2) // its floor is being judged
		other := ask(t.Context(), svc, 10, nil)
		cancel()
		granted(t, other, 1, 10)
	})
}

// TestWaitersAreBounded: beyond 1,000 the next is told at once to come back.
func TestWaitersAreBounded(t *testing.T) {
	slowly(t, func(t *testing.T, svc *sequence.Service, _ *seqtest.Faulty) {
		var answers []<-chan sequence.LeaseResult
		for range 1000 {
			answers = append(answers, ask(t.Context(), svc, 1, nil))
		}
		begin := time.Now()
		r := lease(t, svc, sequence.LeaseItem{Name: "s", Count: 1})
		if !errors.Is(r.Err, sequence.ErrUnavailable) || r.Err.RetryAfter <= 0 || time.Since(begin) > 0 {
			t.Errorf("one more, after %v: %+v", time.Since(begin), r)
		}
		for i, answer := range answers {
			granted(t, answer, int64(1+i), 1)
		}
		granted(t, ask(t.Context(), svc, 1, nil), 1001, 1)
	})
}

// TestFailedRefillIsNotTriedAgainAtOnce: while there are values to grant, a
// store that fails is asked once a second.
func TestFailedRefillIsNotTriedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := seqtest.NewFaulty(seqtest.NewMemory())
		svc := newService(t, store)
		create(t, svc, sequence.Spec{Name: "s"})
		mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 1})
		var asked atomic.Int64
		store.Plan(func(seqtest.Call) seqtest.Fault {
			asked.Add(1)
			return seqtest.CutOff
		})
		for range 500 { // 5 s, of the last 3 of which the stock is low
			mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 1})
			time.Sleep(10 * time.Millisecond)
		}
		if n := asked.Load(); n < 2 || n > 4 {
			t.Errorf("the store was asked %d times in 3 s", n)
		} else if st := svc.Stats(); st.RefillsFailed != n {
			t.Errorf("%d tries counted as failed, want %d", st.RefillsFailed, n)
		}
	})
}

// TestRefusalBringsTheNewestDefinition: values of the old one are granted no
// more after the store's no, and are counted.
func TestRefusalBringsTheNewestDefinition(t *testing.T) {
	store := seqtest.NewMemory()
	a, b := newService(t, store), newService(t, store)
	create(t, a, sequence.Spec{Name: "s"})
	held := mustLease(t, a, sequence.LeaseItem{Name: "s", Count: 10}) // a holds 11..1000
	if _, err := b.Alter(t.Context(), sequence.AlterRequest{Spec: sequence.Spec{Name: "s", Max: new(int64(1500))}}); err != nil {
		t.Fatal(err)
	}
	mustLease(t, b, sequence.LeaseItem{Name: "s", Count: 500}) // the last
	// A floor beyond what a holds sends it to the store.
	item := sequence.LeaseItem{Name: "s", Count: 10, Floor: &sequence.Floor{Epoch: held.Epoch, Last: 1000}}
	if r := lease(t, a, item); !errors.Is(r.Err, sequence.ErrExhausted) {
		t.Fatalf("beyond the end: %+v", r)
	}
	if r := lease(t, a, sequence.LeaseItem{Name: "s", Count: 10}); !errors.Is(r.Err, sequence.ErrExhausted) {
		t.Errorf("granted %v of the old definition", r.Runs)
	}
	if n := a.Stats().Burned[sequence.BurnedAlter]; n != 990 {
		t.Errorf("%d values counted as burned, want 990", n)
	}
}

// TestFloorOfAnotherEpochIsIgnored asks servers that hold nothing, so that the
// store is asked with that floor.
func TestFloorOfAnotherEpochIsIgnored(t *testing.T) {
	for _, step := range []int64{1, -1} {
		store := seqtest.NewMemory()
		admin := newService(t, store)
		create(t, admin, sequence.Spec{Name: "s", Increment: new(step)})
		mustLease(t, admin, sequence.LeaseItem{Name: "s", Count: 1000})
		if r, err := admin.Restart(t.Context(), sequence.RestartRequest{Name: "s", ReuseValues: true}); err != nil || r.Epoch != 2 {
			t.Fatalf("restart: %+v, %v", r, err)
		}
		for _, floor := range []sequence.Floor{{Epoch: 1, Last: 1000 * step}, {Epoch: 3, Last: 1 << 40 * step}, {Epoch: 0, Last: 5_000_000 * step}} {
			before, err := store.Load(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			r := mustLease(t, newService(t, store), sequence.LeaseItem{Name: "s", Count: 10, Floor: &floor})
			if r.Runs[0].First != before.Next || r.Epoch != 2 {
				t.Errorf("floor %+v: granted %v of epoch %d, want from %d", floor, r.Runs, r.Epoch, before.Next)
			}
		}
	}
}

// deaf is a store whose answers come late and come all the same when nobody
// waits for them any more.
type deaf struct{ sequence.Store }

func (d deaf) Advance(ctx context.Context, a sequence.Advance) (sequence.Record, error) {
	time.Sleep(time.Second)
	return d.Store.Advance(context.WithoutCancel(ctx), a)
}

func TestBlockThatArrivesAfterTheEndIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := seqtest.NewMemory()
		svc := sequence.NewService(deaf{store}, sequence.ServiceOptions{})
		create(t, svc, sequence.Spec{Name: "s"})
		answer := ask(t.Context(), svc, 10, nil)
		hurry, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := svc.Close(hurry); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		if r := <-answer; r.Err == nil {
			t.Errorf("granted %v after the end", r.Runs)
		}
		r, err := store.Load(t.Context(), "s")
		if err != nil || r.Next != 1001 {
			t.Fatalf("next %d, %v: no block was taken", r.Next, err)
		}
		if st := svc.Stats(); st.Burned[sequence.BurnedLeftOver] != 1000 || st.Cached != 0 {
			t.Errorf("%d values counted as burned, %d held, want 1000 and none", st.Burned[sequence.BurnedLeftOver], st.Cached)
		}
	})
}

func TestUnknownGiveBackIsCounted(t *testing.T) {
	for fault, next := range map[string]int64{"request": 1001, "reply": 11} {
		store := seqtest.NewFaulty(seqtest.NewMemory())
		svc := newService(t, store)
		create(t, svc, sequence.Spec{Name: "s"})
		mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10})
		store.Plan(seqtest.On(seqtest.OpSwap, map[string]seqtest.Fault{"request": seqtest.LostRequest, "reply": seqtest.LostReply}[fault]))
		if err := svc.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		st := svc.Stats()
		if st.GivenBack != 0 || st.Burned[sequence.BurnedUnknown] != 990 || st.Burned[sequence.BurnedLeftOver] != 0 {
			t.Errorf("lost %s: given back %d, burned %v", fault, st.GivenBack, st.Burned)
		}
		if r, err := store.Load(t.Context(), "s"); err != nil || r.Next != next {
			t.Errorf("lost %s: next %d, %v, want %d", fault, r.Next, err, next)
		}
	}
}

// TestNewerStateIsLookedUp: a lease that has seen a newer version or epoch
// than this server makes it look at the store, at most once a second; and so
// does every one after five minutes.
func TestNewerStateIsLookedUp(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		item  sequence.LeaseItem
		looks bool
	}{
		"nothing new":           {2 * time.Second, sequence.LeaseItem{KnownVersion: 1, Floor: &sequence.Floor{Epoch: 1}}, false},
		"a newer version":       {2 * time.Second, sequence.LeaseItem{KnownVersion: 2}, true},
		"a newer epoch":         {2 * time.Second, sequence.LeaseItem{Floor: &sequence.Floor{Epoch: 2}}, true},
		"newer, just looked up": {time.Second / 2, sequence.LeaseItem{KnownVersion: 2}, false},
		"long ago":              {5*time.Minute + time.Second, sequence.LeaseItem{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := seqtest.NewMemory()
				svc, other := newService(t, store), newService(t, store)
				create(t, svc, sequence.Spec{Name: "s"})
				mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10})
				// Nobody tells svc: it does not Run.
				if _, err := other.Restart(t.Context(), sequence.RestartRequest{Name: "s", With: new(int64(5000)), ReuseValues: true}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.after)
				c.item.Name, c.item.Count = "s", 10
				r := mustLease(t, svc, c.item)
				if looked := r.Runs[0].First == 5000; looked != c.looks {
					t.Errorf("granted %v: looked at the store: %v, want %v", r.Runs, looked, c.looks)
				}
			})
		})
	}
}

// TestReturnAfterAnAlterSaysSo: the epoch is the same, the version is not.
func TestReturnAfterAnAlterSaysSo(t *testing.T) {
	svc := newService(t, seqtest.NewMemory())
	create(t, svc, sequence.Spec{Name: "s"})
	r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10})
	if _, err := svc.Alter(t.Context(), sequence.AlterRequest{Spec: sequence.Spec{Name: "s", Max: new(int64(5000))}}); err != nil {
		t.Fatal(err)
	}
	mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10}) // brings the new version
	before := svc.Stats().Burned[sequence.BurnedAlter]
	if err := svc.Return(t.Context(), sequence.ReturnRequest{Name: "s", LeaseID: r.LeaseID, From: 4, Count: 6}); !errors.Is(err, sequence.ErrPrecondition) {
		t.Errorf("return of an older version: %v", err)
	}
	if n := svc.Stats().Burned[sequence.BurnedAlter] - before; n != 6 {
		t.Errorf("%d values counted as burned, want 6", n)
	}
}

// TestStoreKnownToBeAwayIsNotWaitedFor: a look that is long due waits a moment
// for its answer, the next one not at all.
func TestStoreKnownToBeAwayIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := seqtest.NewFaulty(seqtest.NewMemory())
		svc := newService(t, store)
		create(t, svc, sequence.Spec{Name: "s"})
		mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10})
		time.Sleep(6 * time.Minute)
		store.Plan(seqtest.Always(seqtest.Fault{Delay: time.Hour}))
		for _, most := range []time.Duration{25 * time.Millisecond, 0} {
			begin := time.Now()
			mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10})
			if waited := time.Since(begin); waited > most {
				t.Errorf("it waited %v, want %v at most", waited, most)
			}
			time.Sleep(5500*time.Millisecond - time.Since(begin)) // the look has failed
		}
	})
}
