package rollout_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/rollout"
	"github.com/tallystick/tallystick/rollout/rollouttest"
)

// A change is one that was asked for: it may have happened, and has if it was
// acknowledged.
type change struct{ deletes bool }

// A client checks what one process reads against what was asked for. Numbers of
// changes rise with time, because one comes after the other.
type client struct {
	*world
	t       *rapid.T
	number  int
	changes map[string]map[int]change
	floor   map[string]int // the oldest change whose result may still be seen
	stale   bool           // written in old-only since the last copy
}

var keys = []string{"a", "b"}

func TestSidesAreEqualAfterAnyDeathAndNoReaderGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &client{world: newWorld(rollout.OldOnly), t: t, changes: map[string]map[int]change{}, floor: map[string]int{}}
		c.phase = rollout.Phase(rapid.IntRange(0, int(rollout.NewFirst)).Draw(t, "phase"))
		c.remember = rapid.SampledFrom([]int{1, 100}).Draw(t, "remember")
		c.restart()
		t.Repeat(map[string]func(*rapid.T){
			"put":    c.put,
			"delete": c.delete,
			"get":    c.get,
			"drain":  c.drain,
			"on":     c.on,
			"back":   c.back,
			"land":   func(t *rapid.T) { c.new.Land(rapid.IntRange(0, 9).Draw(t, "which")) },
			"copy":   c.copyOne,
		})
		c.end()
	})
}

// trouble plans what goes wrong in the next operation.
func (c *client) trouble(t *rapid.T) {
	at := rapid.IntRange(0, 10).Draw(t, "step")
	switch kind := rapid.SampledFrom([]string{"none", "none", "kill", "fail", "late"}).Draw(t, "trouble"); kind {
	case "none":
		c.plan = nil
	case "kill":
		c.killAt(at)
	default:
		c.plan = func(call string, done bool) error {
			if at--; at >= 0 {
				return nil
			}
			if kind == "late" && !done && (call == "new.Put" || call == "new.Bury") {
				return rollouttest.ErrLate
			}
			return errPlanted
		}
	}
}

// try runs one operation in trouble, and reports whether it was acknowledged.
func (c *client) try(t *rapid.T, f func() error) bool {
	c.trouble(t)
	died, err := c.do(f)
	c.plan = nil
	if died {
		clear(c.floor)
	}
	return !died && err == nil
}

func (c *client) write(t *rapid.T, deletes bool, f func(key string, number int) error) {
	key := rapid.SampledFrom(keys).Draw(t, "key")
	c.number++
	n := c.number
	if c.changes[key] == nil {
		c.changes[key] = map[int]change{}
	}
	c.changes[key][n] = change{deletes}
	c.stale = c.stale || c.phase == rollout.OldOnly
	if c.try(t, func() error { return f(key, n) }) {
		c.floor[key] = n
	}
}

func (c *client) put(t *rapid.T) {
	c.write(t, false, func(key string, n int) error { return c.store.Put(t.Context(), key, n) })
}

func (c *client) delete(t *rapid.T) {
	c.write(t, true, func(key string, _ int) error { return c.store.Delete(t.Context(), key) })
}

func (c *client) get(t *rapid.T) {
	key := rapid.SampledFrom(keys).Draw(t, "key")
	var value int
	var found bool
	ok := c.try(t, func() (err error) {
		value, found, err = c.store.Get(t.Context(), key)
		return err
	})
	switch {
	case !ok:
	case found && value < c.floor[key]:
		t.Fatalf("%s: %s is %d after %d was seen or acknowledged", c.phase, key, value, c.floor[key])
	case found && c.phase >= rollout.Compare:
		c.floor[key] = value
	case !found && !c.mayBeGone(key):
		t.Fatalf("%s: %s is gone after %d was seen or acknowledged", c.phase, key, c.floor[key])
	case !found && c.phase >= rollout.Compare && c.new.Held()[key].Version > 0:
		c.floor[key] = c.deletion(key)
	}
}

// deletion returns the first change that a reader who finds nothing may have
// seen.
func (c *client) deletion(key string) int {
	first := 0
	for n, ch := range c.changes[key] {
		if ch.deletes && n >= c.floor[key] && (first == 0 || n < first) {
			first = n
		}
	}
	return max(first, c.floor[key])
}

// mayBeGone reports whether key may be seen as deleted or not there yet.
func (c *client) mayBeGone(key string) bool {
	if c.floor[key] == 0 {
		return true
	}
	for n, ch := range c.changes[key] {
		if n >= c.floor[key] && ch.deletes {
			return true
		}
	}
	return false
}

func (c *client) drain(t *rapid.T) {
	c.try(t, func() error {
		_, err := c.store.Drain(t.Context())
		return err
	})
}

// copyOne has the migration read a row and write it later.
func (c *client) copyOne(t *rapid.T) {
	if c.phase == rollout.OldOnly {
		return
	}
	key := rapid.SampledFrom(keys).Draw(t, "key")
	if row, found := c.old.Rows()[key]; found {
		c.plan = func(string, bool) error { return rollouttest.ErrLate }
		c.new.Put(t.Context(), key, row)
		c.plan = nil
	}
}

// on goes one phase on, as far as new-first. Before compare, the copy has run.
func (c *client) on(t *rapid.T) {
	switch c.phase {
	case rollout.NewFirst:
		return
	case rollout.WriteBoth:
		c.copyAll()
		c.stale = false
	}
	c.phase++
}

// back goes one phase back. Nothing is under way any more when old-only is
// reached.
func (c *client) back(t *rapid.T) {
	if c.phase == rollout.OldOnly {
		return
	}
	if c.phase--; c.phase == rollout.OldOnly {
		c.landAll()
	}
}

// end brings both sides together, and lets what is late come after it.
func (c *client) end() {
	c.phase = max(c.phase, rollout.WriteBoth)
	if c.stale {
		c.copyAll()
	}
	c.wantEqual(c.t)
	c.landAll()
	if d := c.differences(); d != "" {
		c.t.Fatalf("what came late made the sides differ (-old +new):\n%s", d)
	}
}

// TestNewFirstAndNewOnlyGetAlong has one process in each phase, as long as a
// change of phase takes, and after going back.
func TestNewFirstAndNewOnlyGetAlong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rollout.NewFirst)
		processes := []*rollout.Store[string, int]{
			w.store, w.process(func(context.Context) rollout.Phase { return rollout.NewOnly }),
		}
		want, number := map[string]int{}, 0
		step := func(op func(p *rollout.Store[string, int], key string) error) func(*rapid.T) {
			return func(t *rapid.T) {
				p, key := rapid.SampledFrom(processes).Draw(t, "process"), rapid.SampledFrom(keys).Draw(t, "key")
				if err := op(p, key); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": step(func(p *rollout.Store[string, int], key string) error {
				number++
				want[key] = number
				return p.Put(t.Context(), key, number)
			}),
			"delete": step(func(p *rollout.Store[string, int], key string) error {
				delete(want, key)
				return p.Delete(t.Context(), key)
			}),
			"get": step(func(p *rollout.Store[string, int], key string) error {
				got, found, err := p.Get(t.Context(), key)
				if value, ok := want[key]; got != value || found != ok {
					return errors.Join(err, errors.New("another value than was written last"))
				}
				return err
			}),
		})
	})
}
