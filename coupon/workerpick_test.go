package coupon

import (
	"strings"
	"testing"
)

func TestPickWorker(t *testing.T) {
	// allAt has others hold all numbers to a high-water, but for those given.
	allAt := func(highWater int64, others ...Worker) []Worker {
		var rows []Worker
		for n := range WorkerNumbers {
			rows = append(rows, Worker{Number: uint8(n), Token: "another", HighWater: highWater})
		}
		for _, row := range others {
			rows[row.Number] = row
		}
		return rows
	}
	last := func(n int) int { return n - 1 }
	back, killed := Worker{Number: 7, HighWater: 999}, Worker{Number: 9, Token: "killed", HighWater: 999}
	for name, c := range map[string]struct {
		rows    []Worker
		now     clocks
		want    Worker
		refused string // part of the refusal; "": it is not refused
	}{
		"no rows":                      {nil, clocks{1000, 1000}, Worker{Number: 255}, ""},
		"never leased":                 {allAt(2000)[:200], clocks{1000, 1000}, Worker{Number: 255}, ""},
		"given back":                   {allAt(2000, back), clocks{1000, 1000}, back, ""},
		"its high-water has passed":    {allAt(2000, killed), clocks{1000, 1000}, killed, ""},
		"one of two":                   {allAt(2000, back, killed), clocks{1000, 1000}, killed, ""},
		"its high-water is now":        {allAt(2000, back), clocks{999, 999}, Worker{}, "free in 1ms"},
		"passed by own clock alone":    {allAt(2000, back), clocks{1000, 990}, Worker{}, "free in 10ms"},
		"passed by the other's alone":  {allAt(2000, back), clocks{990, 1000}, Worker{}, "free in 10ms"},
		"all leased, the first to end": {allAt(70_000, Worker{Number: 3, Token: "a", HighWater: 61_000}), clocks{1000, 1000}, Worker{}, "all 256 worker numbers are leased; the first may be free in 1m0.001s"},
	} {
		got, err := pickWorker(c.rows, c.now, last)
		switch {
		case c.refused == "" && (err != nil || got != c.want):
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, c.want)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s: got %+v, %v, want a refusal with %q", name, got, err, c.refused)
		}
	}
}
