package rollouttest

import (
	"context"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/rollout"
)

// TestOld is the suite of old sides. open returns an empty one; key and value
// make different ones of different numbers.
func TestOld[K, V comparable](t *testing.T, open func(*testing.T) rollout.OldSide[K, V], key func(int) K, value func(int) V) {
	ctx := context.Background()
	noted := rollout.Terms{Note: true}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("versions grow over deletions", func(t *testing.T) {
		o := open(t)
		var last int64
		for i := range 4 {
			n, err := o.Put(ctx, key(1), value(i), rollout.Terms{})
			must(t, err)
			row, found, err := o.Get(ctx, key(1))
			must(t, err)
			if n.Version <= last || n.ID != "" || !found || row.Version != n.Version || row.Value != value(i) {
				t.Fatalf("put %d: note %+v after version %d, row %+v", i, n, last, row)
			}
			last = n.Version
			if i%2 == 0 {
				continue
			}
			n, err = o.Delete(ctx, key(1), rollout.Terms{})
			must(t, err)
			if _, found, err := o.Get(ctx, key(1)); err != nil || found || n.Version <= last || n.ID != "" {
				t.Fatalf("delete: note %+v after version %d, found %t, %v", n, last, found, err)
			}
			last = n.Version
		}
	})
	t.Run("a version lies above what is asked for", func(t *testing.T) {
		o := open(t)
		n, err := o.Put(ctx, key(1), value(1), rollout.Terms{Above: 1 << 40})
		must(t, err)
		again, err := o.Put(ctx, key(1), value(2), rollout.Terms{})
		must(t, err)
		if n.Version <= 1<<40 || again.Version <= n.Version {
			t.Errorf("versions %d and %d", n.Version, again.Version)
		}
	})
	t.Run("deleting nothing leaves a note", func(t *testing.T) {
		o := open(t)
		n, err := o.Delete(ctx, key(1), noted)
		must(t, err)
		left, err := o.Pending(ctx, "", 10)
		must(t, err)
		if n.Version <= 0 || !slices.Equal(left, []rollout.Note[K]{n}) {
			t.Errorf("note %+v, left %+v", n, left)
		}
	})
	t.Run("notes are paged and forgotten", func(t *testing.T) {
		o := open(t)
		var want []rollout.Note[K]
		for i := range 5 {
			n, err := o.Put(ctx, key(i), value(i), noted)
			must(t, err)
			want = append(want, n)
		}
		n, err := o.Delete(ctx, key(0), noted)
		must(t, err)
		want = append(want, n)
		first, err := o.Pending(ctx, "", 4)
		must(t, err)
		rest, err := o.Pending(ctx, first[len(first)-1].ID, 4)
		must(t, err)
		if got := slices.Concat(first, rest); !slices.Equal(got, want) {
			t.Errorf("notes %+v, want %+v", got, want)
		}
		must(t, o.Forget(ctx, want[:5]))
		must(t, o.Forget(ctx, want[:1]))
		left, err := o.Pending(ctx, "", 10)
		must(t, err)
		if !slices.Equal(left, want[5:]) {
			t.Errorf("left %+v, want %+v", left, want[5:])
		}
	})
}

// TestNew is the suite of new sides; see [TestOld].
func TestNew[K, V comparable](t *testing.T, open func(*testing.T) rollout.NewSide[K, V], key func(int) K, value func(int) V) {
	ctx := context.Background()
	row := func(i int, version int64) rollout.Row[V] { return rollout.Row[V]{Value: value(i), Version: version} }
	put := func(r rollout.Row[V]) func(rollout.NewSide[K, V]) (rollout.Held[V], error) {
		return func(n rollout.NewSide[K, V]) (rollout.Held[V], error) { return n.Put(ctx, key(1), r) }
	}
	bury := func(v int64) func(rollout.NewSide[K, V]) (rollout.Held[V], error) {
		return func(n rollout.NewSide[K, V]) (rollout.Held[V], error) { return n.Bury(ctx, key(1), v) }
	}
	for name, c := range map[string]struct {
		steps   []func(rollout.NewSide[K, V]) (rollout.Held[V], error)
		want    rollout.Held[V]
		written bool // by the last step
	}{
		"a row is put where nothing is":         {steps(put(row(1, 5))), rollout.Held[V]{Row: row(1, 5)}, true},
		"a newer row replaces":                  {steps(put(row(1, 5)), put(row(2, 6))), rollout.Held[V]{Row: row(2, 6)}, true},
		"an older row does not":                 {steps(put(row(1, 5)), put(row(2, 4))), rollout.Held[V]{Row: row(1, 5)}, false},
		"nor one of the same version":           {steps(put(row(1, 5)), put(row(2, 5))), rollout.Held[V]{Row: row(1, 5)}, false},
		"a tombstone replaces an older row":     {steps(put(row(1, 5)), bury(6)), rollout.Held[V]{Row: rollout.Row[V]{Version: 6}, Deleted: true}, true},
		"a tombstone is put where nothing is":   {steps(bury(6)), rollout.Held[V]{Row: rollout.Row[V]{Version: 6}, Deleted: true}, true},
		"a tombstone does not replace the same": {steps(put(row(1, 5)), bury(5)), rollout.Held[V]{Row: row(1, 5)}, false},
		"a tombstone keeps older rows away":     {steps(bury(6), put(row(1, 6))), rollout.Held[V]{Row: rollout.Row[V]{Version: 6}, Deleted: true}, false},
		"a newer row replaces a tombstone":      {steps(bury(6), put(row(1, 7))), rollout.Held[V]{Row: row(1, 7)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := open(t)
			if h, err := n.Get(ctx, key(1)); err != nil || h != (rollout.Held[V]{}) {
				t.Fatalf("empty: %+v, %v", h, err)
			}
			var last rollout.Held[V]
			for _, step := range c.steps {
				var err error
				if last, err = step(n); err != nil {
					t.Fatal(err)
				}
			}
			want := c.want
			if h, err := n.Get(ctx, key(1)); err != nil || h != want {
				t.Errorf("holds %+v, %v, want %+v", h, err, want)
			}
			if want.Written = c.written; last != want {
				t.Errorf("answers %+v, want %+v", last, want)
			}
		})
	}
}

func steps[F any](f ...F) []F { return f }
