package migdynamo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

// A guard is the condition of a put. The zero guard is none.
type guard struct {
	condition string
	names     map[string]string
	version   bool     // it compares :v with the version
	same      []string // attributes that it compares with :s0, :s1, …
}

// guards are the conditions for the key of one table.
type guards struct {
	absent, older, same guard
}

// newGuards returns the conditions. Where the table's key does not determine
// that of the source, an item is only replaced by a newer version of the very
// row, so that two rows never take turns in one item. A tombstone, which has
// no attributes to compare, is replaced.
func newGuards(s schema, keyColumns []string) guards {
	names := map[string]string{"#p": s.attrs[0].name}
	absent := guard{condition: "attribute_not_exists(#p)", names: names}
	older := guard{version: true, names: map[string]string{"#p": s.attrs[0].name, "#v": AttrVersion}}
	clause := ""
	if !slices.ContainsFunc(keyColumns, func(c string) bool { return !s.has(c) }) {
		keyColumns = nil // the table's key determines it
	} else {
		older.same = append([]string{AttrKey}, outside(s, keyColumns)...)
	}
	for n, attr := range older.same {
		older.names[fmt.Sprintf("#s%d", n)] = attr
		clause += fmt.Sprintf(" AND (attribute_not_exists(#s%d) OR #s%d = :s%d)", n, n, n)
	}
	older.condition = "attribute_not_exists(#p) OR (#v < :v" + clause + ")"
	same := older
	same.names = map[string]string{"#d": AttrDeleted}
	for k, v := range older.names {
		same.names[k] = v
	}
	same.condition = strings.TrimSuffix(older.condition, ")") + ") OR (#v = :v AND attribute_not_exists(#d)" + clause + ")"
	return guards{absent: absent, older: older, same: same}
}

// outside returns the columns that are not part of the table's key.
func outside(s schema, columns []string) []string {
	var rest []string
	for _, c := range columns {
		if !s.has(c) {
			rest = append(rest, c)
		}
	}
	return rest
}

// write returns the condition of a write in a mode.
func (g guards) write(m migrate.Mode) guard {
	switch m {
	case migrate.Guarded:
		return g.older
	case migrate.Absent:
		return g.absent
	}
	return guard{}
}

// replace returns the condition of a replacement in a mode.
func (g guards) replace(m migrate.Mode) guard {
	if m == migrate.Guarded {
		return g.same
	}
	return g.write(m)
}

// values returns what the condition compares an item with, nil for nothing.
func (g guard) values(e entry) item {
	if !g.version {
		return nil
	}
	values := item{":v": integer(e.version)}
	for n, attr := range g.same {
		v := e.item[attr]
		if v == nil { // equal to nothing: an item with that attribute is another row's
			v = &types.AttributeValueMemberNULL{Value: true}
		}
		values[fmt.Sprintf(":s%d", n)] = v
	}
	return values
}
