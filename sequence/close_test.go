package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

func TestClosedClientRefusesNamesItNeverUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := newService(t, seqtest.NewMemory())
		create(t, svc, sequence.Spec{Name: "s"})
		c := sequence.NewClient(svc, sequence.ClientOptions{})
		c.Close(t.Context())
		start := time.Now()
		_, err := c.Next(t.Context(), "s")
		if waited := time.Since(start); !errors.Is(err, sequence.ErrClosed) || waited > 0 {
			t.Errorf("after %v: %v", waited, err)
		}
		if n := svc.Stats().Granted; n != 0 {
			t.Errorf("%d values granted to a closed client", n)
		}
	})
}

// TestCloseAmidNewNames closes a client while others ask it for names it has
// not seen. Each gets a value or ErrClosed, and nothing is left leased.
func TestCloseAmidNewNames(t *testing.T) {
	svc := newService(t, seqtest.NewMemory())
	var specs []sequence.Spec
	for i := range 2000 {
		specs = append(specs, sequence.Spec{Name: fmt.Sprint(i)})
	}
	if _, err := svc.Create(t.Context(), sequence.CreateRequest{Specs: specs}); err != nil {
		t.Fatal(err)
	}
	for round := range 10 {
		c := sequence.NewClient(svc, sequence.ClientOptions{})
		var begun, callers sync.WaitGroup
		begun.Add(4)
		for k := range 4 {
			callers.Go(func() {
				for i := k; i < len(specs); i += 4 {
					if i == k+20 {
						begun.Done()
					}
					if _, err := c.Next(context.Background(), specs[i].Name); errors.Is(err, sequence.ErrClosed) {
						return
					} else if err != nil {
						t.Errorf("round %d: %v", round, err)
					}
				}
			})
		}
		begun.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		callers.Wait()
		if st := c.Stats(); st.Cached != 0 {
			t.Errorf("round %d: %d values cached after Close", round, st.Cached)
		}
	}
}
