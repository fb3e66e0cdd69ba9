package migdynamo

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/migrate"
)

// A named is a row by its place in the item space.
type named struct {
	index     int // of the row
	ref       string
	partition string
}

// name returns the rows by their names in the sink. Results of those that
// cannot have one are set.
func (s *Sink) name(rows []migrate.Row, results []migrate.Result) []named {
	all := make([]named, 0, len(rows))
	for i, r := range rows {
		ref, partition, err := s.schema.refOf(r)
		if err != nil {
			results[i] = refused(err)
			continue
		}
		all = append(all, named{i, ref, partition})
	}
	return all
}

func refused(err error) migrate.Result {
	return migrate.Result{Outcome: migrate.Refused, Reason: err.Error()}
}

// arrange returns the rows to write in rounds, which are written one after the
// other: no round has two rows for one item. Different rows of the source that
// claim the same item are refused, but for the first.
func arrange(all []named, rows []migrate.Row, results []migrate.Result) [][]int {
	var rounds [][]named
	first, times := map[string]int{}, map[string]int{}
	for _, n := range all {
		f, seen := first[n.ref]
		if seen && !rows[f].Key.Equal(rows[n.index].Key) {
			results[n.index] = refused(duplicate(n.ref, rows[f].Key))
			continue
		}
		if !seen {
			first[n.ref] = n.index
		}
		round := times[n.ref]
		times[n.ref]++
		if round == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[round] = append(rounds[round], n)
	}
	indexes := make([][]int, len(rounds))
	for i, r := range rounds {
		indexes[i] = spread(r)
	}
	return indexes
}

func duplicate(ref string, other migrate.Key) error {
	return fmt.Errorf("item %s is also that of row %s", ref, other)
}

// spread returns the indexes of rows in an order in which those of one
// partition lie evenly apart: a page in the order of time may be one room's
// from end to end, and DynamoDB takes only so much per partition.
func spread(rows []named) []int {
	size, seen := map[string]int{}, map[string]int{}
	for _, n := range rows {
		size[n.partition]++
	}
	type placed struct {
		index int
		at    float64 // of its partition: between 0 and 1
	}
	places := make([]placed, len(rows))
	for i, n := range rows {
		places[i] = placed{n.index, (float64(seen[n.partition]) + 0.5) / float64(size[n.partition])}
		seen[n.partition]++
	}
	slices.SortStableFunc(places, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	indexes := make([]int, len(rows))
	for i, p := range places {
		indexes[i] = p.index
	}
	return indexes
}
