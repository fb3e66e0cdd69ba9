package sequence

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// stocked returns an entry with 1,000 values in stock.
func stocked(t *testing.T) *entry {
	t.Helper()
	d, err := Spec{Name: "s"}.Define()
	if err != nil {
		t.Fatal(err)
	}
	block, after, err := newRecord(d, "0").Take(1000, "1")
	if err != nil {
		t.Fatal(err)
	}
	e := &entry{service: NewService(nil, ServiceOptions{}), name: "s"}
	if err := e.adopt(after, block); err != nil {
		t.Fatal(err)
	}
	return e
}

// grantNow grants 10 values to a waiter, which has yet to look.
func grantNow(t *testing.T, e *entry) (*waiter, LeaseResult) {
	t.Helper()
	w := &waiter{item: LeaseItem{Name: "s", Count: 10}, entry: e, done: make(chan LeaseResult, 1)}
	r, ok := e.grant(w.item, time.Now())
	if !ok {
		t.Fatal("nothing granted")
	}
	w.done <- r
	return w, r
}

// TestGrantInTheMomentTheCallerGaveUpGoesBack: the context has ended and the
// grant is there. Either the caller gets it, or the stock has it again and the
// lease is over.
func TestGrantInTheMomentTheCallerGaveUpGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := stocked(t)
		ended, end := context.WithCancel(t.Context())
		end()
		var got, gaveUp int64
		for range 64 {
			held := e.stock.count
			w, r := grantNow(t, e)
			g := e.grants.find(r.LeaseID)
			if res := w.await(ended); res.Err == nil {
				got += res.Count()
				if e.stock.count != held-10 || g.ended {
					t.Fatalf("granted, and %d values in stock of %d; lease ended: %v", e.stock.count, held, g.ended)
				}
				continue
			}
			gaveUp++
			if e.stock.count != held || !g.ended {
				t.Fatalf("given up, and %d values in stock of %d; lease ended: %v", e.stock.count, held, g.ended)
			}
			// Whoever returns it all the same adds nothing.
			if err := e.takeBack(ReturnRequest{Name: "s", LeaseID: r.LeaseID, Count: 10}); err != nil || e.stock.count != held {
				t.Fatalf("returned: %v, %d values in stock", err, e.stock.count)
			}
		}
		if got == 0 || gaveUp == 0 {
			t.Errorf("%d values granted, %d times given up: one of the two was not tried", got, gaveUp)
		}
		st := e.service.Stats()
		if st.Granted != got || st.Leases != got/10 || e.stock.count != 1000-got {
			t.Errorf("counted %d values in %d leases, %d in stock; %d were granted", st.Granted, st.Leases, e.stock.count, got)
		}
	})
}

func TestGrantGivenUpAfterAChangeIsBurned(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*entry)
		cause  BurnCause
	}{
		"sequence altered": {func(e *entry) {
			altered := e.record
			altered.Version++
			e.adopt(altered, Block{})
		}, BurnedAlter},
		"service closed": {func(e *entry) { e.gone = true }, BurnedLeftOver},
	} {
		t.Run(name, func(t *testing.T) {
			e := stocked(t)
			_, r := grantNow(t, e)
			c.change(e)
			before := e.service.Stats().Burned[c.cause]
			held := e.stock.count
			e.giveUp(r)
			if n := e.service.Stats().Burned[c.cause] - before; n != 10 || e.stock.count != held {
				t.Errorf("burned %d, %d more in stock, want 10 and none", n, e.stock.count-held)
			}
		})
	}
}
