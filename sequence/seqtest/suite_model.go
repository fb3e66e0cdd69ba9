package seqtest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/sequence"
)

// testModel does random calls on the store and on a map, one after another,
// and compares what they say.
func testModel(t *testing.T, f fixture) {
	var runs atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		m := model{fixture: f, run: fmt.Sprintf("run-%d/", runs.Add(1)), records: map[string]sequence.Record{}}
		rt.Repeat(map[string]func(*rapid.T){
			"create":  func(rt *rapid.T) { m.create(t, rt) },
			"load":    func(rt *rapid.T) { m.load(t, rt) },
			"advance": func(rt *rapid.T) { m.advance(t, rt) },
			"swap":    func(rt *rapid.T) { m.swap(t, rt) },
		})
		m.list(t, rt)
	})
}

// A model is what the store must hold under a prefix of its own.
type model struct {
	fixture
	run     string
	records map[string]sequence.Record
}

// draw returns a record of some name of the model with a random position.
func (m *model) draw(t *testing.T, rt *rapid.T) sequence.Record {
	r := m.record(t, m.run+rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name"))
	r.Next = rapid.Int64Range(1, 9).Draw(rt, "next")
	r.Epoch = rapid.Uint64Range(1, 2).Draw(rt, "epoch")
	r.Version = rapid.Uint32Range(1, 2).Draw(rt, "version")
	r.Exhausted = rapid.IntRange(0, 4).Draw(rt, "exhausted") == 0
	r.State = rapid.SampledFrom([]sequence.State{sequence.StateOpen, sequence.StateOpen, sequence.StateDeleted}).Draw(rt, "state")
	return r
}

func (m *model) create(t *testing.T, rt *rapid.T) {
	r := m.draw(t, rt)
	name := r.Definition.Name
	err := m.store.Create(t.Context(), []sequence.Record{r})[0]
	if _, taken := m.records[name]; taken {
		expect(rt, err, sequence.CodeExists)
		return
	}
	expect(rt, err, "")
	m.records[name] = r
}

func (m *model) load(t *testing.T, rt *rapid.T) {
	name := m.draw(t, rt).Definition.Name
	got, err := m.store.Load(t.Context(), name)
	if want, ok := m.records[name]; ok {
		expectRecord(rt, got, err, want, "")
		return
	}
	expect(rt, err, sequence.CodeNotFound)
}

func (m *model) advance(t *testing.T, rt *rapid.T) {
	r := m.draw(t, rt)
	low := rapid.Int64Range(1, 9).Draw(rt, "low")
	a := sequence.Advance{Name: r.Definition.Name, Epoch: r.Epoch, Version: r.Version, Nonce: r.Nonce,
		Delta: rapid.Int64Range(-9, 9).Draw(rt, "delta"), Low: low, High: rapid.Int64Range(low, 12).Draw(rt, "high")}
	got, err := m.store.Advance(t.Context(), a)
	now, ok := m.records[a.Name]
	switch {
	case !ok:
		expect(rt, err, sequence.CodeNotFound)
	case !a.Applies(now):
		expectRecord(rt, got, err, now, sequence.CodeAborted)
	default:
		m.records[a.Name] = a.To(now)
		expectRecord(rt, got, err, a.To(now), "")
	}
}

func (m *model) swap(t *testing.T, rt *rapid.T) {
	next := m.draw(t, rt)
	name := next.Definition.Name
	now, ok := m.records[name]
	nonce := now.Nonce
	if rapid.IntRange(0, 3).Draw(rt, "stale") == 0 {
		nonce = "stale"
	}
	got, err := m.store.Swap(t.Context(), nonce, next)
	switch {
	case !ok:
		expect(rt, err, sequence.CodeNotFound)
	case nonce == "stale":
		expectRecord(rt, got, err, now, sequence.CodeAborted)
	default:
		m.records[name] = next
		expectRecord(rt, got, err, next, "")
	}
}

func (m *model) list(t *testing.T, rt *rapid.T) {
	got := map[string]sequence.Record{}
	for _, r := range m.all(t, m.name(m.run), rapid.IntRange(1, 4).Draw(rt, "limit")) {
		got[r.Definition.Name] = r
	}
	if d := cmp.Diff(m.records, got, cmpopts.EquateEmpty()); d != "" {
		rt.Fatalf("list differs (-want +got):\n%s", d)
	}
}

func expect(rt *rapid.T, err error, want sequence.Code) {
	rt.Helper()
	if sequence.CodeOf(err) != want {
		rt.Fatalf("error = %v, want code %q", err, want)
	}
}

func expectRecord(rt *rapid.T, got sequence.Record, err error, want sequence.Record, code sequence.Code) {
	rt.Helper()
	expect(rt, err, code)
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		rt.Fatalf("record differs (-want +got):\n%s", d)
	}
}
