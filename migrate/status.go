package migrate

import (
	"context"
	"time"
)

// A Report is a migration's status for people and programs.
type Report struct {
	Status     Status     `json:"status"`
	Generation uint64     `json:"generation"`
	Phase      Phase      `json:"phase"`
	Slots      SlotReport `json:"slots"`
	Rows       Counts     `json:"rows"`
	LastSlot   string     `json:"last_slot"` // every slot up to here, in the order of the walk, is finished
	ETA        []int64    `json:"eta_s"`     // seconds left: at the least, at the most; empty if nobody can tell
	Workers    []HeldSlot `json:"workers"`
	Keeper     string     `json:"keeper"`
	Verdict    *Verdict   `json:"verdict,omitempty"`
}

// A SlotReport counts slots.
type SlotReport struct {
	Total    int64 `json:"total"`
	Finished int64 `json:"finished"`
	Running  int64 `json:"running"`
}

// A HeldSlot is what a worker is at.
type HeldSlot struct {
	Worker string `json:"worker"`
	Slot   string `json:"slot"`
	Epoch  uint64 `json:"epoch"`
	Rows   int64  `json:"rows"`
}

// Report returns the status as it is now, or fails with [ErrOtherPlan].
func (m *Migration) Report(ctx context.Context) (Report, error) {
	v, err := m.view(ctx)
	if err != nil {
		return Report{}, err
	}
	r := Report{
		Status: v.Status, Generation: v.Generation, Phase: v.Phase, Rows: v.Counts, Keeper: v.Keeper,
		LastSlot: m.lastSlot(v), ETA: []int64{}, Workers: []HeldSlot{},
		Slots: SlotReport{Total: v.Plan.Slots.Hi - v.Plan.Slots.Lo, Finished: sizeOf(v.Finished[Copying]), Running: int64(len(v.Live))},
	}
	for _, h := range v.Live {
		r.Workers = append(r.Workers, HeldSlot{Worker: h.Worker, Slot: m.axis.Name(h.Slot), Epoch: h.Epoch, Rows: h.Counts.Read})
	}
	if v.Status == Finished {
		r.ETA = []int64{0, 0}
	}
	if lo, hi, ok := timeLeft(v); ok {
		r.ETA = []int64{int64(lo.Seconds()), int64(hi.Seconds())}
	}
	verdict, ok, err := m.state.Verdict(ctx)
	if err == nil && ok {
		r.Verdict = &verdict
	}
	return r, err
}

func sizeOf(spans []Span) int64 {
	var n int64
	for _, s := range spans {
		n += s.Hi - s.Lo
	}
	return n
}

// lastSlot returns the name of the last slot of the run of finished ones that
// begins where the walk does, "" if there is none.
func (m *Migration) lastSlot(v View) string {
	for _, f := range v.Finished[Copying] {
		if m.plan.Oldest() && f.Lo <= v.Plan.Slots.Lo && f.Hi > v.Plan.Slots.Lo {
			return m.axis.Name(Slot{Index: min(f.Hi, v.Plan.Slots.Hi) - 1})
		}
		if !m.plan.Oldest() && f.Hi >= v.Plan.Slots.Hi && f.Lo < v.Plan.Slots.Hi {
			return m.axis.Name(Slot{Index: max(f.Lo, v.Plan.Slots.Lo)})
		}
	}
	return ""
}

// timeLeft estimates how long the copy will take from what it took so far: by
// rows, whose number is an estimate itself, and by slots, which are of unequal
// size. The truth lies more often between the two than at either.
func timeLeft(v View) (lo, hi time.Duration, ok bool) {
	if v.Status != InProgress || v.Phase != PhaseCopy || v.Started.IsZero() {
		return 0, 0, false
	}
	spent := v.Now.Sub(v.Started)
	total, finished := v.Plan.Slots.Hi-v.Plan.Slots.Lo, sizeOf(v.Finished[Copying])
	if spent < 2*time.Second || finished == 0 || v.Counts.Read == 0 {
		return 0, 0, false
	}
	bySlots := time.Duration(float64(spent) * float64(total-finished) / float64(finished))
	byRows := time.Duration(float64(spent) * float64(max(0, v.Plan.Rows-v.Counts.Read)) / float64(v.Counts.Read))
	return min(bySlots, byRows), max(bySlots, byRows), true
}
