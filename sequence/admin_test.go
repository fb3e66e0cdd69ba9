package sequence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqtest"
)

// changes are those of an open sequence "s".
var changes = map[string]func(*testing.T, *sequence.Service) error{
	"alter": func(t *testing.T, svc *sequence.Service) error {
		_, err := svc.Alter(t.Context(), sequence.AlterRequest{Spec: sequence.Spec{Name: "s", Owner: new("us")}, IfVersion: 1})
		return err
	},
	"restart": func(t *testing.T, svc *sequence.Service) error {
		_, err := svc.Restart(t.Context(), sequence.RestartRequest{Name: "s", With: new(int64(5000))})
		return err
	},
	"delete": func(t *testing.T, svc *sequence.Service) error { return svc.Delete(t.Context(), "s") },
}

// eachChange runs test for each change, on a service of its own.
func eachChange(t *testing.T, test func(t *testing.T, store *seqtest.Faulty, change func() error)) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := seqtest.NewFaulty(seqtest.NewMemory())
				svc := sequence.NewService(store, sequence.ServiceOptions{})
				defer svc.Close(t.Context())
				create(t, svc, sequence.Spec{Name: "s"})
				test(t, store, func() error { return change(t, svc) })
			})
		})
	}
}

// changedOnce fails the test unless "s" was changed exactly once, and told.
func changedOnce(t *testing.T, store sequence.Store) {
	t.Helper()
	if r, err := store.Load(t.Context(), "s"); err != nil || r.Version != 2 {
		t.Errorf("version %d, %v, want 2: changed once", r.Version, err)
	}
	if g, err := store.Generation(t.Context()); err != nil || g == 0 {
		t.Errorf("generation %d, %v: nobody was told", g, err)
	}
}

// TestLateWriteOfAChangeIsTheChange: the first write is given up, a read does
// not show it, and it lands just before it is repeated.
func TestLateWriteOfAChangeIsTheChange(t *testing.T) {
	eachChange(t, func(t *testing.T, store *seqtest.Faulty, change func() error) {
		swaps := 0
		store.Plan(func(c seqtest.Call) seqtest.Fault {
			if c.Op != seqtest.OpSwap {
				return seqtest.Fault{}
			}
			if swaps++; swaps == 1 {
				return seqtest.LateWrite
			}
			store.Flush()
			return seqtest.Fault{}
		})
		if err := change(); err != nil {
			t.Errorf("error %v, although it was done", err)
		}
		changedOnce(t, store)
	})
}

func TestUnknownOutcomeOfAChangeIsNotReportedAsNothingDone(t *testing.T) {
	eachChange(t, func(t *testing.T, store *seqtest.Faulty, change func() error) {
		swapped := false
		store.Plan(func(c seqtest.Call) seqtest.Fault {
			switch {
			case c.Op == seqtest.OpSwap && !swapped:
				swapped = true
				return seqtest.LostReply
			case c.Op == seqtest.OpLoad && swapped:
				return seqtest.CutOff
			}
			return seqtest.Fault{}
		})
		if err := change(); !errors.Is(err, sequence.ErrUnknownOutcome) || errors.Is(err, sequence.ErrUnavailable) {
			t.Errorf("error %v, want ErrUnknownOutcome", err)
		}
		store.Plan(nil)
		changedOnce(t, store)
	})
}

// TestLostChangeIsToldApartByItsVersion: the reply is lost, and before the
// read somebody else writes. A block leaves the version, which tells whether
// the change was done; another change may have come before or after it.
func TestLostChangeIsToldApartByItsVersion(t *testing.T) {
	for name, c := range map[string]struct {
		fault   seqtest.Fault
		between func(sequence.Record) sequence.Record
		want    error
		version uint32
	}{
		"request lost, then a block":  {seqtest.LostRequest, func(r sequence.Record) sequence.Record { return r }, nil, 2},
		"reply lost, then a block":    {seqtest.LostReply, func(r sequence.Record) sequence.Record { return r }, sequence.ErrUnknownOutcome, 2},
		"request lost, then a change": {seqtest.LostRequest, func(r sequence.Record) sequence.Record { r.Version++; return r }, sequence.ErrUnknownOutcome, 2},
	} {
		t.Run(name, func(t *testing.T) {
			below := seqtest.NewMemory()
			store := seqtest.NewFaulty(below)
			svc := newService(t, store)
			create(t, svc, sequence.Spec{Name: "s"})
			swapped := false
			store.Plan(func(call seqtest.Call) seqtest.Fault {
				switch {
				case call.Op == seqtest.OpSwap && !swapped:
					swapped = true
					return c.fault
				case call.Op == seqtest.OpLoad && swapped:
					store.Plan(nil)
					now, _ := below.Load(t.Context(), "s")
					next := c.between(now)
					next.Nonce = "of somebody else"
					below.Swap(t.Context(), now.Nonce, next)
				}
				return seqtest.Fault{}
			})
			_, err := svc.Restart(t.Context(), sequence.RestartRequest{Name: "s", With: new(int64(5000))})
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if r, _ := below.Load(t.Context(), "s"); r.Version != c.version {
				t.Errorf("version %d, want %d", r.Version, c.version)
			}
		})
	}
}

func TestUnknownOutcomeOfACreationIsNotReportedAsNothingDone(t *testing.T) {
	for name, c := range map[string]struct{ create, load seqtest.Fault }{
		"late, and read before":         {seqtest.LateWrite, seqtest.Fault{}},
		"reply lost, read refused":      {seqtest.LostReply, seqtest.CutOff},
		"request lost, record not read": {seqtest.LostRequest, seqtest.CutOff},
	} {
		t.Run(name, func(t *testing.T) {
			store := seqtest.NewFaulty(seqtest.NewMemory())
			svc := newService(t, store)
			store.Plan(func(call seqtest.Call) seqtest.Fault {
				switch call.Op {
				case seqtest.OpCreate:
					return c.create
				case seqtest.OpLoad:
					return c.load
				}
				return seqtest.Fault{}
			})
			results, err := svc.Create(t.Context(), sequence.CreateRequest{Specs: []sequence.Spec{{Name: "s"}}})
			if err != nil || sequence.CodeOf(results[0].Err) != sequence.CodeUnknown {
				t.Errorf("error %v, %v, want ErrUnknownOutcome", results[0].Err, err)
			}
		})
	}
}

func TestCreationOfManyTombstonesTellsServersOnce(t *testing.T) {
	store := seqtest.NewMemory()
	svc := newService(t, store)
	specs := []sequence.Spec{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for _, spec := range specs {
		create(t, svc, spec)
		if err := svc.Delete(t.Context(), spec.Name); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := store.Generation(t.Context())
	if _, err := svc.Create(t.Context(), sequence.CreateRequest{Specs: specs}); err != nil {
		t.Fatal(err)
	}
	if after, _ := store.Generation(t.Context()); after != before+1 {
		t.Errorf("generation rose by %d, want 1", after-before)
	}
}

func TestSkipCountsWhatItMoved(t *testing.T) {
	store := seqtest.NewMemory()
	svc := newService(t, store)
	create(t, svc, sequence.Spec{Name: "open"})
	create(t, svc, sequence.Spec{Name: "deleted"})
	create(t, svc, sequence.Spec{Name: "used up", Max: new(int64(10))})
	mustLease(t, svc, sequence.LeaseItem{Name: "used up", Count: 10})
	if err := svc.Delete(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}
	before, _ := store.Generation(t.Context())
	var progress []int
	moved, err := sequence.Skip(t.Context(), store, 1000, func(n int) { progress = append(progress, n) })
	if err != nil || moved != 2 || len(progress) != 2 || progress[1] != 2 {
		t.Errorf("moved %d, progress %v, %v, want 2: one is used up", moved, progress, err)
	}
	for name, want := range map[string]int64{"open": 1001, "deleted": 1001, "used up": 10} {
		if r, err := store.Load(t.Context(), name); err != nil || r.Next != want {
			t.Errorf("%s: next %d, %v, want %d", name, r.Next, err, want)
		}
	}
	if after, _ := store.Generation(t.Context()); after != before {
		t.Errorf("generation rose by %d: no server runs that could be told", after-before)
	}
	if _, err := sequence.Skip(t.Context(), store, 0, nil); !errors.Is(err, sequence.ErrInvalid) {
		t.Errorf("skip of 0: %v", err)
	}
	broken := seqtest.NewFaulty(store)
	broken.Plan(seqtest.Nth(seqtest.OpSwap, 2, seqtest.CutOff))
	if moved, err := sequence.Skip(t.Context(), broken, 1, nil); moved != 1 || !errors.Is(err, sequence.ErrUnavailable) {
		t.Errorf("skip of a store that goes away after one: moved %d, %v", moved, err)
	}
}

// A replaying store does every Swap twice, as an intermediary may, and answers
// with what came of the second.
type replaying struct{ sequence.Store }

func (s replaying) Swap(ctx context.Context, nonce string, next sequence.Record) (sequence.Record, error) {
	if _, err := s.Store.Swap(ctx, nonce, next); err != nil {
		return sequence.Record{}, err
	}
	return s.Store.Swap(ctx, nonce, next)
}

func TestWriteReplayedOnTheWayIsDone(t *testing.T) {
	svc := newService(t, replaying{seqtest.NewMemory()})
	create(t, svc, sequence.Spec{Name: "s", Max: new(int64(100))})
	if r, err := svc.Alter(t.Context(), sequence.AlterRequest{Spec: sequence.Spec{Name: "s", Owner: new("us")}}); err != nil || r.Version != 2 {
		t.Errorf("alter: version %d, %v", r.Version, err)
	}
	r := mustLease(t, svc, sequence.LeaseItem{Name: "s", Count: 100}) // the end of the range: a Swap
	if r.Count() != 100 || r.Runs[0].First != 1 {
		t.Errorf("granted %v", r.Runs)
	}
	if err := svc.Return(t.Context(), sequence.ReturnRequest{Name: "s", LeaseID: r.LeaseID, From: 40, Count: 60}); err != nil {
		t.Fatal(err)
	}
	svc.Close(t.Context())
	if st := svc.Stats(); st.GivenBack != 60 || st.Burned[sequence.BurnedLeftOver] != 0 {
		t.Errorf("gave back %d, burned %v", st.GivenBack, st.Burned)
	}
}
