package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Verdict is what a check found. The zero Verdict is clean.
type Verdict struct {
	Duplicates int // values beyond the first of each
	Disorders  int // calls that got a value not beyond one of a call that had returned before
	Example    string
}

// Clean reports whether nothing was found.
func (v Verdict) Clean() bool { return v.Duplicates == 0 && v.Disorders == 0 }

// Check judges the history of one sequence of one epoch: clients[i] holds the
// events of one client. No value may occur twice; and of two calls of one
// client that follow each other in time, the later must have the later value.
func Check(clients [][]Event, descending bool) Verdict {
	var v Verdict
	var values []int64
	for i, events := range clients {
		for _, e := range events {
			values = append(values, e.Value)
		}
		v.order(i, events, descending)
	}
	slices.Sort(values)
	for i := 1; i < len(values); i++ {
		if values[i] == values[i-1] {
			v.Duplicates++
			v.Example = cmp.Or(v.Example, fmt.Sprintf("value %d was handed out twice", values[i]))
		}
	}
	return v
}

// order walks the calls by their start and compares each with the greatest
// value of those that had returned by then.
func (v *Verdict) order(client int, events []Event, descending bool) {
	sign := int64(1)
	if descending {
		sign = -1
	}
	byStart, byEnd := slices.Clone(events), slices.Clone(events)
	slices.SortFunc(byStart, func(a, b Event) int { return cmp.Compare(a.Start, b.Start) })
	slices.SortFunc(byEnd, func(a, b Event) int { return cmp.Compare(a.End, b.End) })
	var highest *Event
	returned := 0
	for _, e := range byStart {
		for ; returned < len(byEnd) && byEnd[returned].End < e.Start; returned++ {
			if r := &byEnd[returned]; highest == nil || r.Value*sign > highest.Value*sign {
				highest = r
			}
		}
		if highest != nil && e.Value*sign <= highest.Value*sign {
			v.Disorders++
			v.Example = cmp.Or(v.Example, fmt.Sprintf("client %d got %d after %d had been returned to it (%v later)",
				client, e.Value, highest.Value, (e.Start-highest.End).Round(time.Microsecond)))
		}
	}
}
