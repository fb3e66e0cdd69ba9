package rollout_test

import (
	"context"
	"errors"

	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/rollout"
	"github.com/tallystick/tallystick/rollout/rollouttest"
)

var errPlanted = errors.New("planted")

// killed is the panic that stands for the death of the process.
type killed struct{}

// A world is both sides and one process that uses them. Values are the numbers
// of the operations that wrote them.
type world struct {
	old      *rollouttest.Old[string, int]
	new      *rollouttest.New[string, int]
	store    *rollout.Store[string, int]
	phase    rollout.Phase
	remember int

	plan func(call string, done bool) error // nil: nothing goes wrong
}

func newWorld(p rollout.Phase) *world {
	w := &world{old: rollouttest.NewOld[string, int](), new: rollouttest.NewNew[string, int](), phase: p}
	hook := func(call string, done bool) error {
		if w.plan == nil {
			return nil
		}
		return w.plan(call, done)
	}
	w.old.Hook, w.new.Hook = hook, hook
	w.restart()
	return w
}

// restart starts another process, which remembers nothing.
func (w *world) restart() {
	w.store = w.process(func(context.Context) rollout.Phase { return w.phase })
}

func (w *world) process(phase func(context.Context) rollout.Phase) *rollout.Store[string, int] {
	return rollout.New(w.old, w.new, rollout.Options[string, int]{Phase: phase, Remember: w.remember, DrainSize: 2})
}

// do runs f and reports whether the process died in it; another has been
// started then.
func (w *world) do(f func() error) (died bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(killed); !ok {
				panic(p)
			}
			w.plan, died = nil, true
			w.restart()
		}
	}()
	return false, f()
}

// killAt kills the process at the n-th step from now: the beginnings and ends
// of calls of the sides count.
func (w *world) killAt(n int) (reached *bool) {
	reached = new(bool)
	w.plan = func(string, bool) error {
		if n--; n < 0 {
			*reached = true
			panic(killed{})
		}
		return nil
	}
	return reached
}

// copyAll does what a migration and the repair of its verification do.
func (w *world) copyAll() {
	w.plan = nil
	ctx := context.Background()
	rows := w.old.Rows()
	for k, r := range rows {
		w.new.Put(ctx, k, r)
	}
	for k, h := range w.new.Held() {
		if _, found := rows[k]; !found && !h.Deleted {
			w.new.Bury(ctx, k, h.Version+1)
		}
	}
}

func (w *world) landAll() {
	for w.new.Land(0) {
	}
}

// differences returns how new differs from old, "" if it does not.
func (w *world) differences() string {
	live := map[string]rollout.Row[int]{}
	for k, h := range w.new.Held() {
		if !h.Deleted {
			live[k] = h.Row
		}
	}
	return cmp.Diff(w.old.Rows(), live)
}

func (w *world) wantEqual(t interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}) {
	t.Helper()
	w.plan = nil
	if _, err := w.store.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if d := w.differences(); d != "" {
		t.Fatalf("the sides differ (-old +new):\n%s", d)
	}
}
