package sequence

import (
	"testing"
	"time"
)

func TestMovedBack(t *testing.T) {
	up := Record{Definition: Definition{Increment: 1}, Epoch: 5, Version: 5, Next: 100}
	down := up
	down.Definition.Increment = -1
	for name, c := range map[string]struct {
		old    Record
		change func(*Record)
		want   bool
	}{
		"nothing":                      {up, func(*Record) {}, false},
		"further up":                   {up, func(r *Record) { r.Next = 101 }, false},
		"back":                         {up, func(r *Record) { r.Next = 99 }, true},
		"further down":                 {down, func(r *Record) { r.Next = 99 }, false},
		"back up":                      {down, func(r *Record) { r.Next = 101 }, true},
		"back, by a give-back":         {up, func(r *Record) { r.Next, r.GiveBacks = 99, 1 }, false},
		"back, in a newer epoch":       {up, func(r *Record) { r.Next, r.Epoch = 1, 6 }, false},
		"back, in a newer version":     {up, func(r *Record) { r.Next, r.Version = 1, 6 }, false},
		"further, in an older epoch":   {up, func(r *Record) { r.Next, r.Epoch = 200, 4 }, true},
		"further, in an older version": {up, func(r *Record) { r.Next, r.Version = 200, 4 }, true},
		"older epoch, newer version":   {up, func(r *Record) { r.Epoch, r.Version = 4, 6 }, true},
		"newer epoch, older version":   {up, func(r *Record) { r.Epoch, r.Version = 6, 4 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.old
			c.change(&r)
			if got := movedBack(c.old, r, r.Next); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestDue(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*entry)
		want   bool
	}{
		"a full block":              {func(*entry) {}, false},
		"little left":               {func(e *entry) { e.stock.take(900, nil) }, true},
		"nothing left":              {func(e *entry) { e.stock.drop() }, true},
		"at the end":                {func(e *entry) { e.stock.drop(); e.record.Exhausted = true }, false},
		"at the end of a lap":       {func(e *entry) { e.stock.drop(); e.record.Exhausted, e.record.Definition.Cycle = true, true }, true},
		"as much as it may hold":    {func(e *entry) { e.stock.take(900, nil); e.record.Definition.ServerCacheMax = 100 }, false},
		"one less than it may hold": {func(e *entry) { e.stock.take(901, nil); e.record.Definition.ServerCacheMax = 100 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := stocked(t)
			c.change(e)
			if got := e.due(time.Now()); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
