package coupon_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/coupon"
	"github.com/tallystick/tallystick/coupon/coupontest"
	"github.com/tallystick/tallystick/shard"
)

// TestNoIDTwiceWhateverHappens runs random histories of a few processes that
// fight for two worker numbers: with clocks that step, callers that stand still
// between reading the clock and the id, writes whose replies or which themselves
// are late, kills and restarts, and processes whose memory is copied: what two of
// them make before they have looked may come twice, and nothing else.
func TestNoIDTwiceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "n") })
		for range 60 {
			w.step()
			if w.wrong != "" {
				r.Fatal(w.wrong)
			}
		}
	})
}

// TestWorldFindsPlantedFaults makes the leases worthless.
func TestWorldFindsPlantedFaults(t *testing.T) {
	for name, plant := range map[string]func(*world){
		"swaps that compare nothing":                  func(w *world) { w.blind, w.uncopied = true, true },
		"swaps that are not stored":                   func(w *world) { w.forgetful = true },
		"a number given back below the last ms used":  func(w *world) { w.lowered = true },
		"a holder that starts where the last one did": func(w *world) { w.rewound = true },
		"a holder that does not heed its high-water":  func(w *world) { w.greedy = true },
		"a holder that takes any row for its own":     func(w *world) { w.trusting = true },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(1000) {
				w := newWorld(rand.New(rand.NewPCG(seed, 1)).IntN)
				plant(w)
				for range 200 {
					if w.step(); w.wrong != "" {
						t.Logf("seed %d: %s", seed, w.wrong)
						return
					}
				}
			}
			t.Error("not found")
		})
	}
}

// A world is some processes and the control database. Nothing in it waits.
type world struct {
	intN  func(int) int
	now   time.Time
	db    time.Duration // its clock, off by that
	rows  coupontest.Workers
	late  []func() // writes under way
	procs [3]*process
	ids   map[coupon.ID]bool // true: of a process that is there once
	depth int                // of callers that stand still
	wrong string

	blind, forgetful, lowered, rewound, greedy, trusting bool // planted
	uncopied                                             bool // no process is copied, which makes it hard to find what is planted
}

// A process is a minter and its clock.
type process struct {
	world  *world
	clock  time.Duration // off by that
	minter *coupon.Minter
	fault  int    // of the next swap
	shared string // token of the lease that another process has too; "": none has
}

// single reports whether the process has a lease of its own, or none.
func (p *process) single() bool {
	if p.shared != p.minter.LeaseToken() {
		p.shared = ""
	}
	return p.shared == ""
}

// What may befall a swap.
const (
	noFault = iota
	lostRequest
	lostReply
	lateWrite
	faults
)

func newWorld(intN func(int) int) *world {
	w := &world{intN: intN, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), ids: map[coupon.ID]bool{}}
	for n := 2; n < coupon.WorkerNumbers; n++ {
		w.rows.Put(coupon.Worker{Number: uint8(n), Token: "another", HighWater: w.now.AddDate(60, 0, 0).UnixMilli()})
	}
	for i := range w.procs {
		w.procs[i] = &process{world: w}
		w.procs[i].start()
	}
	return w
}

func (p *process) start() {
	p.minter, p.shared = coupon.NewMinterByHand(p, p.setup()), ""
}

// become makes p a copy of another process.
func (p *process) become(other *process) {
	p.minter = other.minter.Double(p, p.setup())
	p.shared = other.minter.LeaseToken()
	other.shared = p.shared
}

func (p *process) setup() coupon.MinterSetup {
	return coupon.MinterSetup{
		Clock:      func() time.Time { return p.world.now.Add(p.clock) },
		AfterClock: func() { p.world.standStill() },
		IntN:       p.world.intN,
	}
}

// step has one thing happen.
func (w *world) step() {
	p := w.procs[w.intN(len(w.procs))]
	switch w.intN(11) {
	case 0, 1:
		w.mint(p)
	case 2, 3, 4:
		p.fault = max(0, w.intN(2*faults)-faults)
		if w.trusting {
			p.minter.Trust(w.rows.Row(0).Token)
			p.minter.Trust(w.rows.Row(1).Token)
		}
		p.minter.Tend(context.Background())
		if w.greedy {
			p.minter.IgnoreHighWater()
		}
	case 5:
		w.now = w.now.Add(time.Duration(w.intN(50)) * time.Millisecond)
	case 6:
		w.now = w.now.Add(time.Duration(w.intN(90)) * time.Second)
	case 7:
		steps := []time.Duration{-time.Hour, -time.Second, 0, 0, time.Second, time.Hour}
		if off := steps[w.intN(len(steps))]; w.intN(5) == 0 {
			w.db = off
		} else {
			p.clock = off
		}
	case 8:
		if len(w.late) > 0 {
			w.late[0]()
			w.late = w.late[1:]
		}
	case 9:
		if w.depth == 0 { // else its caller stands still
			if w.intN(2) == 0 {
				p.minter.End(context.Background())
			}
			p.start()
		}
	case 10:
		if other := w.procs[w.intN(len(w.procs))]; w.depth == 0 && other != p && !w.uncopied {
			p.become(other)
		}
	}
}

// mint makes some ids of a bucket and checks them.
func (w *world) mint(p *process) {
	b := shard.Bucket(w.intN(2))
	for range 1 + w.intN(40) {
		id, err := p.minter.Mint(b)
		switch {
		case errors.Is(err, coupon.ErrNoIDs):
			return
		case err != nil:
			w.wrong = err.Error()
		}
		single := p.single()
		if before, twice := w.ids[id]; twice && before && single {
			w.wrong = fmt.Sprintf("%+v twice", coupon.PartsOf(id))
		}
		w.ids[id] = single
	}
}

// standStill has other things happen between a reading of the clock and the id.
func (w *world) standStill() {
	if w.depth == 2 || w.intN(20) > 0 {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	for range w.intN(10) {
		w.step()
	}
}

// Workers reads the rows.
func (p *process) Workers(ctx context.Context) ([]coupon.Worker, time.Time, error) {
	rows, _, err := p.world.rows.Workers(ctx)
	if p.world.rewound {
		for i := range rows {
			if rows[i].Number < 2 && p.world.intN(4) == 0 {
				rows[i].HighWater -= 60_000
			}
		}
	}
	return rows, p.world.now.Add(p.world.db), err
}

// SwapWorker swaps a row, with the fault that is due.
func (p *process) SwapWorker(ctx context.Context, old, next coupon.Worker) (bool, error) {
	w, fault := p.world, p.fault
	p.fault = noFault
	if w.lowered && next.Token == "" {
		next.HighWater -= 3_700_000
	}
	apply := func() bool {
		if w.forgetful && w.intN(3) == 0 {
			return true
		}
		if w.blind || w.rewound {
			w.rows.Put(next)
			return true
		}
		won, _ := w.rows.SwapWorker(ctx, old, next)
		return won
	}
	switch fault {
	case lostRequest:
		return false, errCut
	case lostReply:
		apply()
		return false, errCut
	case lateWrite:
		w.late = append(w.late, func() { apply() })
		return false, errCut
	}
	return apply(), nil
}
