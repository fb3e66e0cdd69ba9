package sequence

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// smallSpec draws what a definition in a window of 60 values may say, the
// window lying anywhere in int64, its ends included.
func smallSpec(base int64) *rapid.Generator[Spec] {
	return rapid.Custom(func(t *rapid.T) Spec {
		s := Spec{Name: "s"}
		some := func(label string, v int64) *int64 {
			if rapid.IntRange(0, 3).Draw(t, label+" said") == 0 {
				return nil
			}
			return &v
		}
		low := base + rapid.Int64Range(0, 40).Draw(t, "min")
		high := low + rapid.Int64Range(1, 19).Draw(t, "range")
		s.Min, s.Max = some("min", low), some("max", high)
		s.Start = some("start", rapid.Int64Range(low, high).Draw(t, "start"))
		s.Increment = some("increment", rapid.OneOf(rapid.Int64Range(1, 7), rapid.Int64Range(-7, -1)).Draw(t, "increment"))
		if rapid.Bool().Draw(t, "cycle said") {
			s.Cycle = new(rapid.Bool().Draw(t, "cycle"))
		}
		return s
	})
}

// bounded makes a spec say its bounds and start, so that the sequence stays
// within the window.
func (s Spec) bounded(base int64) Spec {
	s.Min, s.Max = new(value(s.Min, base)), new(value(s.Max, base+60))
	s.Start = new(min(max(value(s.Start, *s.Min), *s.Min), *s.Max))
	return s
}

// A life is a sequence under random allocations and administration.
type life struct {
	base   int64
	r      Record
	issued map[owned]bool
	nonce  int
}

func (l *life) fresh() string {
	l.nonce++
	return fmt.Sprint(l.nonce)
}

// use counts a block's values as handed out, and fails if one was before.
func (l *life) use(t *rapid.T, b Block) {
	for _, o := range listed(b.Epoch, b.Run) {
		if l.issued[o] {
			t.Fatalf("value %d of epoch %d handed out twice", o.value, o.epoch)
		}
		l.issued[o] = true
	}
}

func (l *life) take(t *rapid.T) {
	n := rapid.Int64Range(1, 30).Draw(t, "n")
	if l.r.State != StateOpen {
		return
	}
	if b, after, err := l.r.Take(n, l.fresh()); err == nil {
		l.use(t, b)
		l.r = after
	}
}

func (l *life) advance(t *rapid.T) {
	n := rapid.Int64Range(1, 10).Draw(t, "n")
	if a, ok := l.r.advance(n, nil, l.fresh()); ok && a.Applies(l.r) {
		l.r = a.To(l.r)
		l.use(t, a.block(l.r))
	}
}

// becomes checks what every change keeps, and takes it over.
func (l *life) becomes(t *rapid.T, after Record, err error) {
	if err != nil {
		if diff := cmp.Diff(l.r, after); diff != "" {
			t.Fatalf("refused (%v) and yet changed:\n%s", err, diff)
		}
		return
	}
	d := after.Definition
	switch {
	case after.Version <= l.r.Version:
		t.Fatalf("version %d after %d", after.Version, l.r.Version)
	case after.Epoch < l.r.Epoch:
		t.Fatalf("epoch %d after %d", after.Epoch, l.r.Epoch)
	case after.Nonce == l.r.Nonce:
		t.Fatal("nonce kept")
	case d.validate() != nil:
		t.Fatalf("invalid definition: %v", d.validate())
	case after.Next < d.Min || after.Next > d.Max:
		t.Fatalf("counter %d outside [%d, %d]", after.Next, d.Min, d.Max)
	}
	l.r = after
}

func (l *life) alter(t *rapid.T) {
	req := AlterRequest{Spec: smallSpec(l.base).Draw(t, "spec"), ReuseValues: rapid.Bool().Draw(t, "reuse")}
	if l.r.State == StateOpen {
		after, err := l.r.altered(req, l.fresh())
		if err == nil && !req.ReuseValues && after.Epoch != l.r.Epoch {
			t.Fatalf("a new epoch without leave to reuse values")
		}
		l.becomes(t, after, err)
	}
}

func (l *life) restart(t *rapid.T) {
	req := RestartRequest{Name: "s", ReuseValues: rapid.Bool().Draw(t, "reuse")}
	if rapid.Bool().Draw(t, "with said") {
		req.With = new(l.base + rapid.Int64Range(0, 60).Draw(t, "with"))
	}
	if l.r.State == StateOpen {
		after, err := l.r.restarted(req, l.fresh())
		if want := value(req.With, l.r.Definition.Start); err == nil && (after.Next != want || after.Exhausted) {
			t.Fatalf("restarted with %d: %+v", want, after)
		}
		l.becomes(t, after, err)
	}
}

func (l *life) deleteOrCreate(t *rapid.T) {
	spec, reuse := smallSpec(l.base).Draw(t, "spec").bounded(l.base), rapid.Bool().Draw(t, "reuse")
	if l.r.State == StateOpen {
		l.becomes(t, l.r.deleted(l.fresh()), nil)
		return
	}
	d, err := spec.Define()
	if err != nil {
		return
	}
	after, err := l.r.recreated(d, reuse, l.fresh())
	if !reuse && err == nil && d.Descending() == l.r.Definition.Descending() {
		want, ok := firstUnissued(d, l.r)
		if !ok || after.Next != want {
			t.Fatalf("%+v goes on at %d after %+v, want %d, %v", d, after.Next, l.r, want, ok)
		}
	} else if !reuse && err != nil && d.Descending() == l.r.Definition.Descending() {
		if v, ok := firstUnissued(d, l.r); ok {
			t.Fatalf("%v, but %+v may go on at %d after %+v", err, d, v, l.r)
		}
	}
	l.becomes(t, after, err)
}

// firstUnissued returns the first value of d that the tombstone r has not
// handed out, trying one after another.
func firstUnissued(d Definition, r Record) (int64, bool) {
	beyond := func(v int64) bool {
		switch {
		case v == r.Next:
			return !r.Exhausted
		case d.Descending():
			return v < r.Next
		}
		return v > r.Next
	}
	for v, ok := d.Start, true; ok; v, ok = d.skip(v, 1) {
		if beyond(v) {
			return v, true
		}
	}
	return 0, false
}

func (l *life) skip(t *rapid.T) {
	after := l.r.skipped(rapid.Int64Range(1, 100).Draw(t, "n"), l.fresh())
	if after.Nonce == l.r.Nonce {
		if !l.r.Exhausted || l.r.Definition.Cycle {
			t.Fatalf("not skipped: %+v", l.r)
		}
		return
	}
	l.becomes(t, after, nil)
}

// TestNoChangeRepeatsAValueOfItsEpoch: whatever administrators do, in whatever
// order, no value is handed out twice in one epoch.
func TestNoChangeRepeatsAValueOfItsEpoch(t *testing.T) {
	for _, base := range []int64{-30, math.MinInt64, math.MaxInt64 - 60} {
		t.Run(fmt.Sprint(base), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				d, err := smallSpec(base).Draw(t, "spec").bounded(base).Define()
				if err != nil {
					t.Fatal(err)
				}
				l := life{base: base, r: newRecord(d, "0"), issued: map[owned]bool{}}
				t.Repeat(map[string]func(*rapid.T){
					"take": l.take, "advance": l.advance, "alter": l.alter, "restart": l.restart,
					"delete or create": l.deleteOrCreate, "skip": l.skip,
				})
			})
		})
	}
}

// TestSkipPassesWhatAStoreForgot: a store is restored from a backup after some
// values were handed out; once at least as many are skipped, none of them is
// handed out again in its epoch, over however many laps.
func TestSkipPassesWhatAStoreForgot(t *testing.T) {
	for _, base := range []int64{-30, math.MinInt64, math.MaxInt64 - 60} {
		t.Run(fmt.Sprint(base), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				d, err := smallSpec(base).Draw(t, "spec").bounded(base).Define()
				if err != nil {
					t.Fatal(err)
				}
				l := life{base: base, r: newRecord(d, "0"), issued: map[owned]bool{}}
				for range rapid.IntRange(0, 5).Draw(t, "before") {
					l.take(t)
				}
				backup := l.r
				before := len(l.issued)
				for range rapid.IntRange(0, 10).Draw(t, "forgotten") {
					l.take(t)
				}
				n := int64(len(l.issued)-before) + rapid.Int64Range(0, 10).Draw(t, "margin")
				l.r = backup.skipped(max(1, n), l.fresh())
				for range 10 {
					l.take(t)
				}
			})
		})
	}
}

func TestSkipCountsLapsWithoutWalkingThem(t *testing.T) {
	lap := Definition{Name: "s", Increment: 2, Min: -2, Max: 5, Start: 3, Cycle: true} // 3 5, then -2 0 2 4
	full := Definition{Name: "s", Increment: 1, Min: math.MinInt64, Max: math.MaxInt64, Start: math.MaxInt64, Cycle: true}
	once := lap
	once.Cycle = false
	for name, c := range map[string]struct {
		d         Definition
		n         int64
		next      int64
		exhausted bool
		epoch     uint64
	}{
		"within the lap":           {lap, 1, 5, false, 1},
		"to its end":               {lap, 2, 5, true, 1},
		"into the next":            {lap, 3, 0, false, 2},
		"to the end of that":       {lap, 6, 4, true, 2},
		"over several":             {lap, 2 + 4*10 + 1, 0, false, 12},
		"to the end of the last":   {lap, 2 + 4*10, 4, true, 11},
		"as many as there can be":  {lap, math.MaxInt64, 0, false, 1 + (math.MaxInt64-2)/4 + 1},
		"a lap of all of int64":    {full, 1 << 40, math.MinInt64 + 1<<40 - 1, false, 2},
		"not beyond without cycle": {once, 1000, 5, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := newRecord(c.d, "0").skipped(c.n, "1")
			if got.Nonce != "1" || got.Next != c.next || got.Exhausted != c.exhausted || got.Epoch != c.epoch || got.Version != 1+forgotten {
				t.Errorf("got %+v, want next %d, exhausted %v in epoch %d", got, c.next, c.exhausted, c.epoch)
			}
		})
	}
}

// at returns an ascending record of [1, 100] with its counter at next.
func at(next int64, exhausted bool) Record {
	r := newRecord(Definition{Name: "s", Increment: 1, Min: 1, Max: 100, Start: 1,
		BlockSize: 1, MaxBlock: 1, ServerCacheMax: 1, ClientCacheMin: 1, ClientCacheMax: 1, BufferSeconds: 1}, "0")
	r.Next, r.Exhausted = next, exhausted
	return r
}

func TestAlterRaisesTheVersionAndKeepsTheCounter(t *testing.T) {
	type want struct {
		next      int64
		exhausted bool
		epoch     uint64
		refused   *Error
		field     string
	}
	for name, c := range map[string]struct {
		from Record
		req  AlterRequest
		want want
	}{
		"a larger step goes on from the counter":     {at(50, false), AlterRequest{Spec: Spec{Increment: new(int64(10))}}, want{next: 50, epoch: 1}},
		"bounds around the counter":                  {at(50, false), AlterRequest{Spec: Spec{Min: new(int64(-5)), Max: new(int64(50)), Start: new(int64(2))}}, want{next: 50, epoch: 1}},
		"max below the counter":                      {at(50, false), AlterRequest{Spec: Spec{Max: new(int64(49))}}, want{refused: ErrPrecondition, field: "max"}},
		"min above the counter":                      {at(50, false), AlterRequest{Spec: Spec{Min: new(int64(51)), Start: new(int64(60))}}, want{refused: ErrPrecondition, field: "min"}},
		"start outside the bounds":                   {at(50, false), AlterRequest{Spec: Spec{Min: new(int64(10))}}, want{refused: ErrInvalid, field: "start"}},
		"increment 0":                                {at(50, false), AlterRequest{Spec: Spec{Increment: new(int64(0))}}, want{refused: ErrInvalid, field: "increment"}},
		"exhausted, and room again":                  {at(100, true), AlterRequest{Spec: Spec{Max: new(int64(200))}}, want{next: 101, epoch: 1}},
		"exhausted, and room for a larger step":      {at(100, true), AlterRequest{Spec: Spec{Max: new(int64(200)), Increment: new(int64(100))}}, want{next: 200, epoch: 1}},
		"exhausted, and no room for a larger step":   {at(100, true), AlterRequest{Spec: Spec{Max: new(int64(200)), Increment: new(int64(101))}}, want{next: 100, exhausted: true, epoch: 1}},
		"exhausted, and still so":                    {at(100, true), AlterRequest{Spec: Spec{Cycle: new(true)}}, want{next: 100, exhausted: true, epoch: 1}},
		"a turn needs leave":                         {at(50, false), AlterRequest{Spec: Spec{Increment: new(int64(-1))}}, want{refused: ErrPrecondition, field: "increment"}},
		"a turn begins a new epoch":                  {at(50, false), AlterRequest{Spec: Spec{Increment: new(int64(-1))}, ReuseValues: true}, want{next: 50, epoch: 2}},
		"a turn of what is exhausted":                {at(100, true), AlterRequest{Spec: Spec{Increment: new(int64(-1))}, ReuseValues: true}, want{next: 100, epoch: 2}},
		"leave to reuse is not used without need":    {at(50, false), AlterRequest{Spec: Spec{Increment: new(int64(2))}, ReuseValues: true}, want{next: 50, epoch: 1}},
		"of the version somebody read":               {at(50, false), AlterRequest{Spec: Spec{}, IfVersion: 1}, want{next: 50, epoch: 1}},
		"of another version":                         {at(50, false), AlterRequest{Spec: Spec{}, IfVersion: 2}, want{refused: ErrConflict, field: "if_version"}},
		"block size beyond the largest block, alone": {at(50, false), AlterRequest{Spec: Spec{BlockSize: new(int64(50))}}, want{refused: ErrInvalid, field: "server_cache_max"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.Spec.Name = "s"
			got, err := c.from.altered(c.req, "1")
			if c.want.refused != nil {
				var e *Error
				if !errors.Is(err, c.want.refused) || !errors.As(err, &e) || e.Field != c.want.field || e.Remedy == "" {
					t.Errorf("error %#v, want %v of %s with a remedy", err, c.want.refused, c.want.field)
				}
				return
			}
			if err != nil || got.Next != c.want.next || got.Exhausted != c.want.exhausted || got.Epoch != c.want.epoch || got.Version != 2 || got.Nonce != "1" {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestRestartBackNeedsLeaveAndANewEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		from  Record
		with  *int64
		reuse bool
		want  int64 // the next value; 0: refused
		epoch uint64
		field string
		err   *Error
	}{
		"forward":                           {from: at(50, false), with: new(int64(80)), want: 80, epoch: 1},
		"where it stands":                   {from: at(50, false), with: new(int64(50)), want: 50, epoch: 1},
		"back needs leave":                  {from: at(50, false), with: new(int64(49)), err: ErrPrecondition, field: "with"},
		"back begins a new epoch":           {from: at(50, false), with: new(int64(49)), reuse: true, want: 49, epoch: 2},
		"at the start":                      {from: at(50, false), reuse: true, want: 1, epoch: 2},
		"at the last value of what is over": {from: at(100, true), with: new(int64(100)), err: ErrPrecondition, field: "with"},
		"of what is over, with leave":       {from: at(100, true), with: new(int64(100)), reuse: true, want: 100, epoch: 2},
		"beyond max":                        {from: at(50, false), with: new(int64(101)), reuse: true, err: ErrInvalid, field: "with"},
		"below min":                         {from: at(50, false), with: new(int64(0)), reuse: true, err: ErrInvalid, field: "with"},
		"leave is not used without need":    {from: at(50, false), with: new(int64(51)), reuse: true, want: 51, epoch: 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.from.restarted(RestartRequest{Name: "s", With: c.with, ReuseValues: c.reuse}, "1")
			if c.err != nil {
				var e *Error
				if !errors.Is(err, c.err) || !errors.As(err, &e) || e.Field != c.field || e.Remedy == "" {
					t.Errorf("error %#v, want %v of %s with a remedy", err, c.err, c.field)
				}
				return
			}
			if err != nil || got.Next != c.want || got.Exhausted || got.Epoch != c.epoch || got.Version != 2 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestRecreationGoesOnBeyondTheTombstone(t *testing.T) {
	for name, c := range map[string]struct {
		old   Record
		spec  Spec
		reuse bool
		want  int64 // the next value; 0: refused
		field string
	}{
		"goes on beyond the counter":            {at(50, false), Spec{}, false, 50, ""},
		"by its own steps":                      {at(50, false), Spec{Increment: new(int64(20))}, false, 61, ""},
		"at its start, when that lies beyond":   {at(50, false), Spec{Start: new(int64(1000))}, false, 1000, ""},
		"beyond the last value of what is over": {at(100, true), Spec{}, false, 101, ""},
		"nothing is left":                       {at(100, true), Spec{Max: new(int64(100))}, false, 0, "start"},
		"no step of it is left":                 {at(50, false), Spec{Max: new(int64(60)), Increment: new(int64(20))}, false, 0, "start"},
		"the other direction needs leave":       {at(50, false), Spec{Increment: new(int64(-1))}, false, 0, "increment"},
		"the other direction":                   {at(50, false), Spec{Increment: new(int64(-1))}, true, -1, ""},
		"with leave it begins at its start":     {at(50, false), Spec{Start: new(int64(7))}, true, 7, ""},
		"a step larger than int64 is far":       {at(50, false), Spec{Increment: new(int64(math.MaxInt64 - 1))}, false, math.MaxInt64, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Name = "s"
			d, err := c.spec.Define()
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.old.deleted("1").recreated(d, c.reuse, "2")
			if c.want == 0 {
				var e *Error
				if !errors.Is(err, ErrPrecondition) || !errors.As(err, &e) || e.Field != c.field || got.State != StateDeleted {
					t.Errorf("%+v, error %#v, want %s refused", got, err, c.field)
				}
				return
			}
			if err != nil || got.Next != c.want || got.Exhausted || got.Epoch != 2 || got.Version != 3 || got.State != StateOpen {
				t.Errorf("got %+v, %v, want next %d", got, err, c.want)
			}
		})
	}
}

func TestDeletedKeepsTheCounter(t *testing.T) {
	r := at(50, false)
	got := r.deleted("1")
	want := r
	want.State, want.Version, want.Nonce = StateDeleted, 2, "1"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, ok := got.advance(1, nil, "2"); ok {
		if a, _ := got.advance(1, nil, "2"); a.Applies(got) {
			t.Error("an advance applies to a tombstone")
		}
	}
}
