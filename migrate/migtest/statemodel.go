package migtest

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/migrate"
)

// modelSlots is the number of slots in a run of the model.
const modelSlots = 12

// testFinishModel does random calls on the state and on sets of indexes, and
// compares what they say: which slot a claim gets, what is finished, open, live
// and counted.
func testFinishModel(t *testing.T, s *stateTest) {
	rapid.Check(t, func(rt *rapid.T) {
		run := &stateTest{fixture: s.open(t)}
		run.start(t, modelSlots)
		m := &stateModel{stateTest: run, finished: map[int64]bool{}, sliced: map[int64][]*piece{}}
		rt.Repeat(map[string]func(*rapid.T){
			"claim":   func(rt *rapid.T) { m.claimOne(t, rt) },
			"save":    func(rt *rapid.T) { m.save(t, rt) },
			"split":   func(rt *rapid.T) { m.splitOne(t, rt) },
			"finish":  func(rt *rapid.T) { m.finishOne(t, rt) },
			"release": func(rt *rapid.T) { m.release(t, rt) },
			"":        func(rt *rapid.T) { m.compare(t) },
		})
	})
}

// A piece is a slot that was claimed, or part of one.
type piece struct {
	slot  migrate.Slot
	claim *migrate.Claim // nil: free
	done  bool
	now   migrate.Progress
}

// A stateModel is what the state must hold.
type stateModel struct {
	*stateTest
	finished map[int64]bool
	sliced   map[int64][]*piece // by index, the base first and then in the order of splits; once it was claimed
	order    []*piece           // parts, in the order of splits
	total    migrate.Counts     // of what is done
	keys     int
}

// draw returns a piece that is claimed, or nil.
func (m *stateModel) draw(rt *rapid.T) *piece {
	var held []*piece
	for i := int64(modelSlots - 1); i >= 0; i-- {
		for _, p := range m.sliced[i] {
			if p.claim != nil {
				held = append(held, p)
			}
		}
	}
	if len(held) == 0 {
		rt.Skip()
	}
	return rapid.SampledFrom(held).Draw(rt, "piece")
}

// expect returns the piece that a claim must get, or nil.
func (m *stateModel) expect(lo, hi int64, oldest bool) *piece {
	indexes := rising(max(lo, 0), min(hi, modelSlots))
	if !oldest {
		slices.Reverse(indexes)
	}
	for _, i := range indexes {
		for _, p := range m.order {
			if p.slot.Index == first+i && p.claim == nil && !p.done {
				return p
			}
		}
	}
	for _, i := range indexes {
		if m.finished[i] {
			continue
		}
		if len(m.sliced[i]) == 0 {
			return &piece{slot: at(i)}
		}
		if p := m.sliced[i][0]; p.claim == nil && !p.done {
			return p
		}
	}
	return nil
}

func rising(lo, hi int64) (all []int64) {
	for i := lo; i < hi; i++ {
		all = append(all, i)
	}
	return all
}

func (m *stateModel) claimOne(t *testing.T, rt *rapid.T) {
	lo, hi := rapid.Int64Range(-2, modelSlots).Draw(rt, "lo"), rapid.Int64Range(0, modelSlots+2).Draw(rt, "hi")
	backwards := rapid.Bool().Draw(rt, "oldest")
	want := m.expect(lo, hi, backwards)
	edit := []func(*migrate.ClaimRequest){within(lo, hi), func(r *migrate.ClaimRequest) { r.Oldest = backwards }}
	if want == nil {
		m.none(t, edit...)
		return
	}
	c := m.claim(t, edit...)
	same(t, "slot", c.Slot, want.slot)
	same(t, "progress", c.Progress, want.now)
	want.claim = &c
	if i := c.Slot.Index - first; len(m.sliced[i]) == 0 {
		m.sliced[i] = []*piece{want}
	}
}

// further returns progress beyond that of p.
func further(rt *rapid.T, p *piece) migrate.Progress {
	return ending(progress(p.now.Counts.Read+rapid.Int64Range(1, 9).Draw(rt, "rows")), p.now.Lo)
}

func (m *stateModel) save(t *testing.T, rt *rapid.T) {
	p := m.draw(rt)
	p.now = further(rt, p)
	_, err := m.Save(t.Context(), *p.claim, p.now)
	ok(t, err)
}

func (m *stateModel) splitOne(t *testing.T, rt *rapid.T) {
	p := m.draw(rt)
	m.keys++
	begin := p.now.Lo
	now, rest := m.split(t, *p.claim, further(rt, p), fmt.Sprint("k", m.keys))
	p.now = now
	part := &piece{slot: rest, now: migrate.Progress{Lo: begin}}
	i := rest.Index - first
	m.sliced[i], m.order = append(m.sliced[i], part), append(m.order, part)
}

func (m *stateModel) finishOne(t *testing.T, rt *rapid.T) {
	p := m.draw(rt)
	i := p.slot.Index - first
	lo, hi := i-rapid.Int64Range(0, 3).Draw(rt, "below"), i+1+rapid.Int64Range(0, 3).Draw(rt, "above")
	p.now = further(rt, p)
	ok(t, m.Finish(t.Context(), *p.claim, p.now, slots(lo, hi)))
	p.claim, p.done = nil, true
	m.total = m.total.Plus(p.now.Counts)
	for _, j := range rising(max(lo, 0), min(hi, modelSlots)) {
		if len(m.sliced[j]) == 0 { // nobody ever came to it
			m.finished[j] = true
		}
	}
	if slices.ContainsFunc(m.sliced[i], func(p *piece) bool { return !p.done }) {
		return
	}
	m.finished[i] = true
}

func (m *stateModel) release(t *testing.T, rt *rapid.T) {
	p := m.draw(rt)
	ok(t, m.Release(t.Context(), *p.claim))
	p.claim = nil
	if i := p.slot.Index - first; len(m.sliced[i]) == 1 && p.now.Counts.Read == 0 {
		delete(m.sliced, i)
	}
}

// compare looks at everything.
func (m *stateModel) compare(t *testing.T) {
	v := m.view(t)
	var spans []migrate.Span
	live, open, total := 0, 0, m.total
	for _, i := range rising(0, modelSlots) {
		n := len(spans)
		switch {
		case m.finished[i] && n > 0 && spans[n-1].Hi == first+i:
			spans[n-1].Hi++
		case m.finished[i]:
			spans = append(spans, slots(i, i+1))
		}
		for j, p := range m.sliced[i] {
			if p.claim != nil {
				live++
			}
			if !p.done {
				total = total.Plus(p.now.Counts)
				open += min(j, 1)
			}
		}
	}
	same(t, "finished", v.Finished[migrate.Copying], spans)
	same(t, "counts", v.Counts, total)
	same(t, "live and open", []int{len(v.Live), len(v.Open)}, []int{live, open})
}
