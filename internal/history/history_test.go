package history_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/history"
)

// clean returns a history without fault: calls overlap and finish in any
// order, but a call that begins after another returned has a later value.
func clean(clients, calls int) [][]history.Event {
	all := make([][]history.Event, clients)
	value := int64(0)
	for call := range calls {
		for c := range all {
			value += 1 + rand.Int64N(3)
			begun := time.Duration(call) * 10
			all[c] = append(all[c], history.Event{Start: begun + 1 + time.Duration(rand.IntN(5)), End: begun + 20 + time.Duration(rand.IntN(50)), Value: value})
		}
	}
	return all
}

func TestCheckAcceptsWhatIsClean(t *testing.T) {
	if v := history.Check(clean(5, 10_000), false); !v.Clean() {
		t.Errorf("found %+v", v)
	}
}

func TestCheckFindsPlantedFaults(t *testing.T) {
	duplicate := clean(5, 10_000)
	duplicate[3][7000].Value = duplicate[1][7000].Value
	if v := history.Check(duplicate, false); v.Duplicates != 1 {
		t.Errorf("planted duplicate: %+v", v)
	}
	disorder := clean(5, 10_000)
	disorder[2][500].Value, disorder[2][600].Value = disorder[2][600].Value, disorder[2][500].Value
	if v := history.Check(disorder, false); v.Disorders == 0 || v.Duplicates != 0 {
		t.Errorf("planted disorder: %+v", v)
	}
	if v := history.Check(clean(1, 100), true); v.Disorders == 0 {
		t.Errorf("rising values of a descending sequence: %+v", v)
	}
}

func TestLogReadsBackWhatWasAppended(t *testing.T) {
	dir := t.TempDir()
	for caller := range 3 {
		log, err := history.Create(dir, fmt.Sprint(caller), 100)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 120 {
			e := history.Event{Start: time.Duration(i), End: time.Duration(i + 1), Value: int64(-i)}
			if ok := log.Append(e); ok != (i < 100) {
				t.Errorf("append %d: %v", i, ok)
			}
		}
	}
	events, err := history.Read(dir)
	if err != nil || len(events) != 300 || events[5].Value != -5 || events[5].End != 6 {
		t.Errorf("%d events, %v", len(events), err)
	}
}
