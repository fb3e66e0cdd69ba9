package migtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// A SourceTable says how a table of [TestSource] is made: keys have Parts
// parts, the first as Axis says, a second one that is text. Its rows have the
// fields of the key, in order, named "k" and "tie", then "version" and "body",
// a text.
type SourceTable struct {
	Axis   migrate.Axis
	Parts  int
	Oldest bool
}

// keys returns n keys, rising.
func (table SourceTable) keys(n int) []migrate.Key {
	const first = 1_700_000_000_000
	keys := make([]migrate.Key, n)
	for i := range keys {
		at := i / 3 * 50 // three to a place: 60 to a slot
		k := migrate.Axis{By: table.Axis.By, Width: 1, Lower: table.Axis.Lower}.Bound(int64(first + at))
		if table.Parts == 1 {
			k[0] = table.within(k[0], at, i%3)
		} else {
			k = append(k, []string{"", "A", "a~%"}[i%3])
		}
		keys[i] = k
	}
	return keys
}

// within returns the first part of the nth key at a place, where there is one
// part.
func (table SourceTable) within(k string, at, n int) string {
	switch table.Axis.By {
	case migrate.ByTimestamp:
		return time.UnixMilli(1_700_000_000_000 + int64(at)).Add(time.Duration(n) * time.Microsecond).UTC().Format(time.RFC3339Nano)
	case migrate.ByInteger:
		return k[:len(k)-1] + fmt.Sprint(n)
	}
	return k[:len(k)-1] + fmt.Sprint(2*n)
}

func (table SourceTable) rows(keys []migrate.Key) []migrate.Row {
	rows := make([]migrate.Row, len(keys))
	for i, k := range keys {
		rows[i] = table.row(k, int64(i+1))
	}
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

func (table SourceTable) row(k migrate.Key, version int64) migrate.Row {
	first := migrate.Value{Kind: migrate.Text, Text: k[0]}
	if table.Axis.By == migrate.ByInteger {
		first.Kind = migrate.Number
	}
	r := migrate.Row{Key: k, Version: version, Fields: []migrate.Field{{Name: "k", Value: first}}}
	if len(k) > 1 {
		r.Fields = append(r.Fields, migrate.Field{Name: "tie", Value: migrate.Value{Kind: migrate.Text, Text: k[1]}})
	}
	body := strings.Repeat("x", int(version%97))
	return migrate.Row{Key: k, Version: version, Fields: append(r.Fields,
		migrate.Field{Name: "version", Value: migrate.Value{Kind: migrate.Number, Text: fmt.Sprint(version)}},
		migrate.Field{Name: "body", Value: migrate.Value{Kind: migrate.Text, Text: body}})}
}
