package sequence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// TestAbandonedNextNLeavesTheCacheAsItWas takes what two leases hold, gives up,
// and expects the values again, in order; and at the end, that exactly what was
// not used went back to the server.
func TestAbandonedNextNLeavesTheCacheAsItWas(t *testing.T) {
	for _, more := range []int64{0, 2, 1000} { // values used afterwards, as far as there are any
		synctest.Test(t, func(t *testing.T) { abandon(t, more) })
	}
}

func abandon(t *testing.T, more int64) {
	svc := newService(t, seqtest.NewMemory())
	create(t, svc, sequence.Spec{Name: "s"})
	server := &flaky{Leaser: svc, rtt: 5 * time.Millisecond}
	c := sequence.NewClient(server, sequence.ClientOptions{})
	for want := int64(1); want <= 45; want++ { // into the first lease, and with a second one behind it
		if got := next(t, c, "s"); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	time.Sleep(time.Second)
	server.set(true)
	held := c.Stats().Cached
	if leases := c.Stats().Leases; leases < 2 || held < 10 {
		t.Errorf("%d leases, %d values held", leases, held)
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := c.NextN(ctx, "s", int(held)+100); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("NextN beyond the cache: %v", err)
		}
		cancel()
		if got := c.Stats().Cached; got != held {
			t.Errorf("%d values held, %d before", got, held)
		}
	}
	used := int64(45)
	for range min(more, held-5) {
		used++
		if got := next(t, c, "s"); got != used {
			t.Errorf("got %d, want %d", got, used)
		}
	}
	if got := c.Stats().Values; got != used {
		t.Errorf("%d values counted as handed out, want %d", got, used)
	}
	server.set(false)
	time.Sleep(5 * time.Second)
	c.Close(t.Context())
	if r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 1}); r.Runs[0].First != used+1 {
		t.Errorf("after Close the server goes on with %d, want %d", r.Runs[0].First, used+1)
	}
}

// TestLostReplyOfABlock: a block whose reply was lost is found by its nonce and
// used; one that never was written is counted as burned, since nobody can know.
func TestLostReplyOfABlock(t *testing.T) {
	for fault, burned := range map[string]int64{"reply": 0, "request": 1000} {
		synctest.Test(t, func(t *testing.T) {
			store := seqtest.NewFaulty(seqtest.NewMemory())
			svc := newService(t, store)
			create(t, svc, sequence.Spec{Name: "s"})
			store.Plan(seqtest.Once(seqtest.OpAdvance, map[string]seqtest.Fault{"reply": seqtest.LostReply, "request": seqtest.LostRequest}[fault]))
			r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 10})
			if r.Runs[0].First != 1 {
				t.Errorf("lost %s: granted from %d", fault, r.Runs[0].First)
			}
			if n := svc.Stats().Burned[sequence.BurnedUnknown]; n != burned {
				t.Errorf("lost %s: %d values counted as burned, want %d", fault, n, burned)
			}
		})
	}
}

func TestReturnOfWhatIsNotOfTheLease(t *testing.T) {
	svc := newService(t, seqtest.NewMemory())
	create(t, svc, sequence.Spec{Name: "s", Min: new(int64(1)), Max: new(int64(20)), Cycle: new(true)})
	first := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 20})
	beyond := sequence.ReturnRequest{Name: "s", LeaseID: first.LeaseID, From: first.Count() + 1, Count: 1}
	if err := svc.Return(t.Context(), beyond); !errors.Is(err, sequence.ErrInvalid) {
		t.Errorf("return from beyond the lease: %v", err)
	}
	second := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 5})
	if second.Epoch == first.Epoch {
		t.Fatalf("no new epoch: %+v", second)
	}
	old := sequence.ReturnRequest{Name: "s", LeaseID: first.LeaseID, From: 10, Count: 10}
	if err := svc.Return(t.Context(), old); !errors.Is(err, sequence.ErrPrecondition) {
		t.Errorf("return of an older epoch: %v", err)
	}
	if r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 5}); r.Epoch != second.Epoch {
		t.Errorf("granted %v of epoch %d after %d", r.Runs, r.Epoch, second.Epoch)
	}
}
