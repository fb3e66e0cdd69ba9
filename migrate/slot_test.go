package migrate_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

func axes() map[string]migrate.Axis {
	hour := time.Hour.Milliseconds()
	return map[string]migrate.Axis{
		"ulid":       {By: migrate.ByULID, Width: hour},
		"lower ulid": {By: migrate.ByULID, Width: hour, Lower: true},
		"uuidv7":     {By: migrate.ByUUIDv7, Width: hour},
		"timestamp":  {By: migrate.ByTimestamp, Width: 15 * time.Minute.Milliseconds()},
		"integer":    {By: migrate.ByInteger, Width: 1000},
	}
}

// TestSlotsPartitionTheAxis: the least key of a slot lies in it, the one before
// it in the slot below, and names lead back to their slots.
func TestSlotsPartitionTheAxis(t *testing.T) {
	for name, a := range axes() {
		t.Run(name, func(t *testing.T) {
			for range 1000 {
				i := rand.Int64N(470_000) + 1
				if got, err := a.Index(a.Bound(i)); err != nil || got != i {
					t.Fatalf("slot of the least key of %d is %d, %v", i, got, err)
				}
				s := migrate.Slot{Index: i}
				if rand.IntN(2) == 0 {
					s.Below = migrate.Key{fmt.Sprint(i), "a~b+c%"}
				}
				got, err := a.ParseName(a.Name(s))
				if err != nil || got.Index != i || !got.Below.Equal(s.Below) {
					t.Fatalf("%s leads to %+v, %v; want %+v", a.Name(s), got, err, s)
				}
			}
		})
	}
}

func TestSlotNames(t *testing.T) {
	hour := migrate.Axis{By: migrate.ByULID, Width: time.Hour.Milliseconds()}
	i := hour.At(time.Date(2024, 10, 20, 2, 59, 0, 0, time.UTC))
	if got := hour.Name(migrate.Slot{Index: i}); got != "20241020.02" {
		t.Errorf("name %s", got)
	}
}

func TestIndexRefusesWhatIsNoKey(t *testing.T) {
	for name, a := range axes() {
		for _, k := range []migrate.Key{nil, {""}, {"hello"}, {"8ZZZZZZZZZZZZZZZZZZZZZZZZZ"}} {
			if i, err := a.Index(k); !errors.Is(err, migrate.ErrOffAxis) {
				t.Errorf("%s: %v lies in slot %d, %v", name, k, i, err)
			}
		}
	}
}

// TestTheGreatestIntegersLieInASlot: the last one is open, the first begins at
// the least integer.
func TestTheGreatestIntegersLieInASlot(t *testing.T) {
	a := axes()["integer"]
	for _, v := range []int64{math.MaxInt64, math.MaxInt64 - 5_000, math.MinInt64, math.MinInt64 + 5_000} {
		i, err := a.Index(migrate.Key{strconv.FormatInt(v, 10)})
		if err != nil {
			t.Fatal(err)
		}
		r := a.Range(migrate.Slot{Index: i}, migrate.Span{})
		if lo, err := strconv.ParseInt(a.Bound(i)[0], 10, 64); err != nil || lo > v {
			t.Errorf("the slot of %d begins at %d, %v", v, lo, err)
		}
		if r.Hi == nil != (v == math.MaxInt64) {
			t.Errorf("the slot of %d ends at %v", v, r.Hi)
		}
		if s, err := a.ParseName(a.Name(migrate.Slot{Index: i})); err != nil || s.Index != i {
			t.Errorf("the name of %d leads to %d, %v", i, s.Index, err)
		}
	}
}

func TestNegativeIntegersLieInSlotsBelowZero(t *testing.T) {
	a := axes()["integer"]
	for v, want := range map[string]int64{"-1": -1, "-1000": -1, "-1001": -2, "0": 0, "999": 0, "1000": 1} {
		if got, err := a.Index(migrate.Key{v}); err != nil || got != want {
			t.Errorf("%s lies in slot %d, want %d (%v)", v, got, want, err)
		}
	}
}
