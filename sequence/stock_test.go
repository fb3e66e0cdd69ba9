package sequence

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// owned is one value in a stock.
type owned struct {
	epoch uint64
	value int64
}

// listed returns the values of runs one by one.
func listed(epoch uint64, runs ...Run) []owned {
	var all []owned
	for _, r := range runs {
		for i := range r.Count {
			all = append(all, owned{epoch, r.At(i)})
		}
	}
	return all
}

// A stockModel holds what a stock must hold, value by value, in the order to
// grant them.
type stockModel struct {
	stock
	step  int64
	held  []owned
	next  int64 // the store's counter
	epoch uint64

	granted []granted
}

type granted struct {
	epoch uint64
	runs  []Run
}

func (m *stockModel) before(a, b owned) int {
	switch {
	case a == b:
		return 0
	case a.epoch != b.epoch:
		return order(a.epoch < b.epoch)
	}
	return order((a.value < b.value) == (m.step > 0))
}

// pieces returns the longest runs that m.held consists of.
func (m *stockModel) pieces() []piece {
	var all []piece
	for _, o := range m.held {
		if n := len(all); n > 0 && all[n-1].epoch == o.epoch && all[n-1].Last()+m.step == o.value {
			all[n-1].Count++
			continue
		}
		all = append(all, piece{Run{o.value, m.step, 1}, o.epoch})
	}
	return all
}

// trim burns the oldest runs beyond the limit and returns how many values.
func (m *stockModel) trim() (burned int64) {
	for p := m.pieces(); len(p) > 1+maxLeftOver; p = m.pieces() {
		burned += p[0].Count
		m.held = m.held[p[0].Count:]
	}
	return burned
}

func (m *stockModel) add(t *rapid.T, run Run, epoch uint64) {
	got := m.stock.add(run, epoch)
	m.held = append(m.held, listed(epoch, run)...)
	slices.SortFunc(m.held, m.before)
	if want := m.trim(); got != want {
		t.Fatalf("adding %v burned %d, want %d", run, got, want)
	}
	m.agree(t)
}

// agree fails unless stock and model hold the same, in as few runs as possible.
func (m *stockModel) agree(t *rapid.T) {
	want := m.pieces()
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(m.stock.pieces)); diff != "" {
		t.Fatalf("stock (-want +got):\n%s", diff)
	}
	if m.count != int64(len(m.held)) {
		t.Fatalf("counts %d values, holds %d", m.count, len(m.held))
	}
}

// block takes the next values from the store, sometimes after another server
// took some or the sequence began a new lap.
func (m *stockModel) block(t *rapid.T) {
	if rapid.IntRange(0, 5).Draw(t, "wrap") == 0 {
		m.epoch++
		m.next = rapid.Int64Range(-50, 50).Draw(t, "begin")
	}
	m.next += m.step * rapid.SampledFrom([]int64{0, 0, 1, 10}).Draw(t, "taken by others")
	run := Run{m.next, m.step, rapid.Int64Range(1, 20).Draw(t, "n")}
	m.next = run.Last() + m.step
	m.add(t, run, m.epoch)
}

// take grants values and checks which.
func (m *stockModel) take(t *rapid.T) {
	n := rapid.Int64Range(1, 40).Draw(t, "n")
	var floor *Floor
	if rapid.Bool().Draw(t, "with floor") {
		floor = &Floor{Epoch: rapid.Uint64Range(m.epoch-min(m.epoch, 2), m.epoch+1).Draw(t, "floor's epoch"), Last: rapid.Int64Range(m.next-60, m.next+60).Draw(t, "floor")}
	}
	var want, left []owned
	for _, o := range m.held {
		beyond := floor == nil || o.epoch > floor.Epoch ||
			o.epoch == floor.Epoch && o.value != floor.Last && (o.value > floor.Last) == (m.step > 0)
		if beyond && int64(len(want)) < n && (want == nil || want[0].epoch == o.epoch) {
			want = append(want, o)
		} else {
			left = append(left, o)
		}
	}
	runs, epoch, burned := m.stock.take(n, floor)
	if diff := cmp.Diff(want, listed(epoch, runs...), cmp.AllowUnexported(owned{})); diff != "" {
		t.Fatalf("taking %d beyond %v (-want +got):\n%s", n, floor, diff)
	}
	for i := 1; i < len(runs); i++ {
		if runs[i-1].joins(runs[i]) {
			t.Fatalf("granted %v in pieces that join", runs)
		}
	}
	m.held = left
	if want := m.trim(); burned != want {
		t.Fatalf("taking burned %d, want %d", burned, want)
	}
	m.agree(t)
	if runs != nil {
		m.granted = append(m.granted, granted{epoch, runs})
	}
}

// giveBack returns the end of some lease.
func (m *stockModel) giveBack(t *rapid.T) {
	if len(m.granted) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.granted)-1).Draw(t, "lease")
	g := m.granted[i]
	m.granted = slices.Delete(m.granted, i, i+1)
	all := listed(g.epoch, g.runs...)
	from := rapid.IntRange(0, len(all)).Draw(t, "from")
	back := suffix(g.runs, int64(from))
	if diff := cmp.Diff(all[from:], listed(g.epoch, back...), cmp.AllowUnexported(owned{})); diff != "" && from < len(all) {
		t.Fatalf("suffix of %v from %d (-want +got):\n%s", g.runs, from, diff)
	} else if from == len(all) && back != nil {
		t.Fatalf("suffix of %v beyond its end: %v", g.runs, back)
	}
	for _, r := range back {
		m.add(t, r, g.epoch)
	}
}

// tail takes what can be given back to the store: the run that ends at its
// counter.
func (m *stockModel) tail(t *rapid.T) {
	r := Record{Definition: Definition{Increment: m.step}, Epoch: m.epoch, Next: m.next}
	if rapid.Bool().Draw(t, "exhausted") {
		r.Next, r.Exhausted = m.next-m.step, true
	}
	want := Run{}
	if p := m.pieces(); len(p) > 0 && p[len(p)-1].epoch == m.epoch && p[len(p)-1].Last() == m.next-m.step {
		want = p[len(p)-1].Run
		m.held = m.held[:int64(len(m.held))-want.Count]
		m.next = want.First
	}
	if got := m.stock.tail(r); got != want {
		t.Fatalf("tail %v, want %v", got, want)
	}
	m.agree(t)
}

// TestStockLosesNothing drives a stock at random beside a model of single
// values: none is lost or doubled but those counted as burned, they are granted
// in order and beyond the floor, and at most five runs are kept.
func TestStockLosesNothing(t *testing.T) {
	for _, step := range []int64{1, -1, 7, -7} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := stockModel{step: step, epoch: 1}
				t.Repeat(map[string]func(*rapid.T){
					"block": m.block, "take": m.take, "give back": m.giveBack, "tail": m.tail,
				})
				n := m.count
				if got := m.drop(); got != n || m.count != 0 || m.stock.pieces != nil {
					t.Fatalf("dropped %d of %d and kept %d", got, n, m.count)
				}
			})
		})
	}
}

func TestStockKeepsTheNewestRuns(t *testing.T) {
	var s stock
	for i := range int64(5) {
		if burned := s.add(Run{First: 100 * i, Step: 1, Count: 10 + i}, 1); burned != 0 {
			t.Fatalf("run %d burned %d", i, burned)
		}
	}
	if burned := s.add(Run{First: 900, Step: 1, Count: 1}, 1); burned != 10 {
		t.Errorf("the sixth run burned %d, want the 10 of the oldest", burned)
	}
	// A floor inside a run splits it in two: one too many.
	runs, _, burned := s.take(1, &Floor{Epoch: 1, Last: 204})
	if diff := cmp.Diff([]Run{{First: 205, Step: 1, Count: 1}}, runs); diff != "" {
		t.Error(diff)
	}
	if burned != 11 {
		t.Errorf("the split burned %d, want the 11 of the oldest", burned)
	}
}

func TestStockGrantsOneEpochAtATime(t *testing.T) {
	var s stock
	s.add(Run{First: 99, Step: 1, Count: 2}, 1)
	s.add(Run{First: 1, Step: 1, Count: 50}, 2)
	for _, want := range []granted{
		{1, []Run{{First: 99, Step: 1, Count: 2}}},
		{2, []Run{{First: 1, Step: 1, Count: 10}}},
	} {
		if runs, epoch, _ := s.take(10, nil); epoch != want.epoch || !slices.Equal(runs, want.runs) {
			t.Errorf("granted %v of epoch %d, want %v of %d", runs, epoch, want.runs, want.epoch)
		}
	}
}
