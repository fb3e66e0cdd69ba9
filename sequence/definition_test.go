package sequence

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tuned is what every definition has that says nothing of caching.
var tuned = Definition{
	Name: "s", BlockSize: 1000, MaxBlock: 1_000_000, ServerCacheMax: 2_000_000,
	ClientCacheMin: 50, ClientCacheMax: 500, BufferSeconds: 5,
}

func TestDefineTakesPostgresDefaults(t *testing.T) {
	for name, c := range map[string]struct {
		spec Spec
		want Definition // its arithmetic
	}{
		"nothing said":                       {Spec{}, Definition{Start: 1, Increment: 1, Min: 1, Max: math.MaxInt64}},
		"descending":                         {Spec{Increment: new(int64(-1))}, Definition{Start: -1, Increment: -1, Min: math.MinInt64, Max: -1}},
		"ascending starts at min":            {Spec{Min: new(int64(-7))}, Definition{Start: -7, Increment: 1, Min: -7, Max: math.MaxInt64}},
		"descending starts at max":           {Spec{Increment: new(int64(-2)), Max: new(int64(9))}, Definition{Start: 9, Increment: -2, Min: math.MinInt64, Max: 9}},
		"start alone":                        {Spec{Start: new(int64(1001))}, Definition{Start: 1001, Increment: 1, Min: 1, Max: math.MaxInt64}},
		"cycle":                              {Spec{Cycle: new(true)}, Definition{Start: 1, Increment: 1, Min: 1, Max: math.MaxInt64, Cycle: true}},
		"the steepest way down":              {Spec{Increment: new(int64(math.MinInt64))}, Definition{Start: -1, Increment: math.MinInt64, Min: math.MinInt64, Max: -1}},
		"a range of two":                     {Spec{Min: new(int64(math.MaxInt64 - 1))}, Definition{Start: math.MaxInt64 - 1, Increment: 1, Min: math.MaxInt64 - 1, Max: math.MaxInt64}},
		"all of int64, from the other end":   {Spec{Min: new(int64(math.MinInt64)), Start: new(int64(math.MaxInt64))}, Definition{Start: math.MaxInt64, Increment: 1, Min: math.MinInt64, Max: math.MaxInt64}},
		"a step larger than the whole range": {Spec{Max: new(int64(3)), Increment: new(int64(100))}, Definition{Start: 1, Increment: 100, Min: 1, Max: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			want := tuned
			want.Start, want.Increment, want.Min, want.Max, want.Cycle = c.want.Start, c.want.Increment, c.want.Min, c.want.Max, c.want.Cycle
			c.spec.Name = "s"
			got, err := c.spec.Define()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDefineNamesTheFieldItRefuses(t *testing.T) {
	long := strings.Repeat("x", 256)
	many := map[string]string{}
	for i := range MaxLabels + 1 {
		many[fmt.Sprint(i)] = ""
	}
	for name, c := range map[string]struct {
		spec  Spec
		field string
	}{
		"increment 0":                       {Spec{Increment: new(int64(0))}, "increment"},
		"min equals max":                    {Spec{Min: new(int64(5)), Max: new(int64(5))}, "min"},
		"min beyond max":                    {Spec{Min: new(int64(6)), Max: new(int64(5))}, "min"},
		"min beyond the default max":        {Spec{Increment: new(int64(-1)), Min: new(int64(0))}, "min"},
		"max below the default min":         {Spec{Max: new(int64(0))}, "min"},
		"start below min":                   {Spec{Start: new(int64(0))}, "start"},
		"start beyond max":                  {Spec{Max: new(int64(9)), Start: new(int64(10))}, "start"},
		"start beyond max, descending":      {Spec{Increment: new(int64(-1)), Start: new(int64(0))}, "start"},
		"no name":                           {Spec{Name: "-"}, "name"},
		"name too long":                     {Spec{Name: long}, "name"},
		"name with a line break":            {Spec{Name: "a\nb"}, "name"},
		"name with a zero byte":             {Spec{Name: "a\x00"}, "name"},
		"name that is not UTF-8":            {Spec{Name: "a\xff"}, "name"},
		"block size 0":                      {Spec{BlockSize: new(int64(0))}, "block_size"},
		"block size negative":               {Spec{BlockSize: new(int64(-1))}, "block_size"},
		"block size too large":              {Spec{BlockSize: new(int64(MaxBlockSize + 1))}, "block_size"},
		"largest block below block size":    {Spec{BlockSize: new(int64(10)), MaxBlock: new(int64(9))}, "max_block"},
		"largest block too large":           {Spec{MaxBlock: new(int64(MaxBlockSize + 1))}, "max_block"},
		"server cache below a block":        {Spec{ServerCacheMax: new(int64(999))}, "server_cache_max"},
		"client cache 0":                    {Spec{ClientCacheMin: new(int64(0))}, "client_cache_min"},
		"client cache max below its min":    {Spec{ClientCacheMin: new(int64(10)), ClientCacheMax: new(int64(9))}, "client_cache_max"},
		"client cache too large":            {Spec{ClientCacheMax: new(int64(MaxCacheSize + 1))}, "client_cache_max"},
		"threshold negative":                {Spec{MinThreshold: new(int64(-1))}, "min_threshold"},
		"threshold beyond the client cache": {Spec{MinThreshold: new(int64(501))}, "min_threshold"},
		"no buffer":                         {Spec{BufferSeconds: new(int64(0))}, "buffer_seconds"},
		"buffer too long":                   {Spec{BufferSeconds: new(int64(MaxBufferSeconds + 1))}, "buffer_seconds"},
		"owner too long":                    {Spec{Owner: &long}, "owner"},
		"owner with a control character":    {Spec{Owner: new("a\tb")}, "owner"},
		"label without a key":               {Spec{Labels: map[string]string{"": "v"}}, "labels"},
		"label with a long value":           {Spec{Labels: map[string]string{"k": long}}, "labels"},
		"too many labels":                   {Spec{Labels: many}, "labels"},
	} {
		t.Run(name, func(t *testing.T) {
			switch c.spec.Name {
			case "":
				c.spec.Name = "s"
			case "-":
				c.spec.Name = ""
			}
			_, err := c.spec.Define()
			var e *Error
			if !errors.Is(err, ErrInvalid) || !errors.As(err, &e) || e.Field != c.field || e.Remedy == "" {
				t.Errorf("error %#v, want INVALID_ARGUMENT of %s with a remedy", err, c.field)
			}
		})
	}
}

func TestDefineTakesWhatLimitsAllow(t *testing.T) {
	name := strings.Repeat("n", 255)
	spec := Spec{
		Name: name, BlockSize: new(int64(MaxBlockSize)), MaxBlock: new(int64(MaxBlockSize)), ServerCacheMax: new(int64(math.MaxUint32)),
		ClientCacheMin: new(int64(1)), ClientCacheMax: new(int64(MaxCacheSize)), MinThreshold: new(int64(MaxCacheSize)),
		BufferSeconds: new(int64(MaxBufferSeconds)), Owner: new("team größe"), Labels: map[string]string{"k": ""},
	}
	if _, err := spec.Define(); err != nil {
		t.Error(err)
	}
}

// TestRaisingOneEndTakesTheOtherAlong: nobody has to know a default to say one
// of two numbers that depend on each other.
func TestRaisingOneEndTakesTheOtherAlong(t *testing.T) {
	for name, c := range map[string]struct {
		spec Spec
		want Definition
	}{
		"small largest block":    {Spec{MaxBlock: new(int64(10))}, Definition{BlockSize: 10, MaxBlock: 10, ClientCacheMin: 50, ClientCacheMax: 500}},
		"large client cache min": {Spec{ClientCacheMin: new(int64(5000))}, Definition{BlockSize: 1000, MaxBlock: 1_000_000, ClientCacheMin: 5000, ClientCacheMax: 5000}},
		"small client cache max": {Spec{ClientCacheMax: new(int64(7))}, Definition{BlockSize: 1000, MaxBlock: 1_000_000, ClientCacheMin: 7, ClientCacheMax: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Name = "s"
			d, err := c.spec.Define()
			if err != nil {
				t.Fatal(err)
			}
			got := Definition{BlockSize: d.BlockSize, MaxBlock: d.MaxBlock, ClientCacheMin: d.ClientCacheMin, ClientCacheMax: d.ClientCacheMax}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApplyChangesWhatIsSaidAndNothingElse(t *testing.T) {
	before, err := Spec{Name: "s", Start: new(int64(5)), Labels: map[string]string{"a": "1"}}.Define()
	if err != nil {
		t.Fatal(err)
	}
	same, err := Spec{Name: "s"}.Apply(before)
	if diff := cmp.Diff(before, same); err != nil || diff != "" {
		t.Errorf("nothing said: %v\n%s", err, diff)
	}
	labels := map[string]string{"b": "2"}
	got, err := Spec{Name: "s", Increment: new(int64(3)), Labels: labels, Owner: new("me")}.Apply(before)
	want := before
	want.Increment, want.Owner, want.Labels = 3, "me", map[string]string{"b": "2"}
	labels["b"] = "changed by the caller"
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("three fields said: %v\n%s", err, diff)
	}
	if got, _ := (Spec{Name: "s", Labels: map[string]string{}}).Apply(before); len(got.Labels) != 0 {
		t.Errorf("labels %v after none were said", got.Labels)
	}
}

// TestDefinedRangesAreSound: whatever is accepted can be taken from, and
// whatever contradicts itself is refused.
func TestDefinedRangesAreSound(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		maybe := func(label string) *int64 {
			if rapid.Bool().Draw(t, label+" said") {
				return new(anyInt64().Draw(t, label))
			}
			return nil
		}
		s := Spec{Name: "s", Start: maybe("start"), Increment: maybe("increment"), Min: maybe("min"), Max: maybe("max"), Cycle: new(rapid.Bool().Draw(t, "cycle"))}
		d, err := s.Define()
		sound := d.Increment != 0 && d.Min < d.Max && d.Min <= d.Start && d.Start <= d.Max
		if sound != (err == nil) {
			t.Fatalf("%+v: %v", d, err)
		}
		if err != nil {
			return
		}
		block, _, err := newRecord(d, "0").Take(1, "1")
		if err != nil || block.First != d.Start {
			t.Fatalf("first block of %+v: %+v, %v", d, block, err)
		}
	})
}

func TestStepsAreExact(t *testing.T) {
	checkMany(t, func(t *rapid.T) {
		r := anyRecord().Draw(t, "record")
		d := r.Definition
		want := bigSteps(r.Next, d.bound(), d.Increment)
		if got := d.stepsFrom(r.Next); new(big.Int).SetUint64(got).Cmp(want) != 0 {
			t.Fatalf("%d steps from %d in %+v, want %v", got, r.Next, d, want)
		}
		v, ok := d.skip(r.Next, 1)
		if ok != (want.Sign() > 0) || ok && bigAt(r.Next, d.Increment, 1).Cmp(bigOf(v)) != 0 {
			t.Errorf("step from %d in %+v: %d, %v", r.Next, d, v, ok)
		}
		n := rapid.OneOf(rapid.Uint64Range(1, 10), rapid.Uint64()).Draw(t, "n")
		v, ok = d.skip(r.Next, n)
		if ok != (want.Cmp(new(big.Int).SetUint64(n)) >= 0) {
			t.Fatalf("skip %d from %d in %+v: %v", n, r.Next, d, ok)
		}
		far := new(big.Int).Mul(bigOf(d.Increment), new(big.Int).SetUint64(n))
		if ok && far.Add(far, bigOf(r.Next)).Cmp(bigOf(v)) != 0 {
			t.Errorf("skip %d from %d in %+v: %d", n, r.Next, d, v)
		}
	})
}
