package migdynamo

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

// A guard is the condition of a put. The zero guard is none.
type guard struct {
	condition string
	names     map[string]string
	version   bool     // it compares :v with the version
	compared  []string // attributes that it compares with :s0, :s1, …
}

// guards are the conditions for the key of one table.
//
// Where the table's key does not determine that of the source, an item is only
// replaced by a newer version of the very row, so that two rows never take
// turns in one item. A tombstone, which has no attributes to compare, is
// replaced.
type guards struct {
	determined        bool // the table's key determines the source's, unless a mapping changes its columns
	absent            guard
	older, same       guard // where it does
	olderRow, sameRow guard // where it does not
}

func newGuards(s schema, keyColumns []string) guards {
	rest := outside(s, keyColumns)
	partition := s.attrs[0].name
	compared := append([]string{AttrKey}, rest...)
	return guards{
		determined: len(rest) == 0,
		absent:     guard{condition: "attribute_not_exists(#p)", names: map[string]string{"#p": partition}},
		older:      newGuard(partition, false, nil), same: newGuard(partition, true, nil),
		olderRow: newGuard(partition, false, compared), sameRow: newGuard(partition, true, compared),
	}
}

// newGuard returns the condition that an item is absent or older, or with
// equal of the same version and no tombstone.
func newGuard(partition string, equal bool, compared []string) guard {
	g := guard{version: true, compared: compared, names: map[string]string{"#p": partition, "#v": AttrVersion}}
	clause := ""
	for n, attr := range compared {
		g.names[fmt.Sprintf("#s%d", n)] = attr
		clause += fmt.Sprintf(" AND (attribute_not_exists(#s%d) OR #s%d = :s%d)", n, n, n)
	}
	g.condition = "attribute_not_exists(#p) OR (#v < :v" + clause + ")"
	if equal {
		g.names["#d"] = AttrDeleted
		g.condition += " OR (#v = :v AND attribute_not_exists(#d)" + clause + ")"
	}
	return g
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

// of returns the condition of a write, or a replacement, of e in a mode.
func (g guards) of(e entry, m migrate.Mode, replace bool) guard {
	_, noted := e.item[AttrKey]
	switch compare := noted || !g.determined; {
	case m == migrate.Overwrite:
		return guard{}
	case m == migrate.Absent:
		return g.absent
	case replace && compare:
		return g.sameRow
	case replace:
		return g.same
	case compare:
		return g.olderRow
	}
	return g.older
}

// values returns what the condition compares an item with, nil for nothing.
func (g guard) values(e entry) item {
	if !g.version {
		return nil
	}
	values := item{":v": integer(e.version)}
	for n, attr := range g.compared {
		v := e.item[attr]
		if v == nil { // equal to nothing: an item with that attribute is another row's
			v = &types.AttributeValueMemberNULL{Value: true}
		}
		values[fmt.Sprintf(":s%d", n)] = v
	}
	return values
}
