package migrate

import (
	"cmp"
	"fmt"

	"github.com/tallystick/tallystick/internal/spelling"
)

// A Column is one that a source reads, and what its values are unless they are
// null.
type Column struct {
	Name string
	Kind Kind
}

// CheckColumns refuses, with a [PlanError], a plan that makes something of these
// columns that no sink can take: two of them under one attribute, an item without
// its key, a map of what is no JSON. Without it every row would be quarantined.
func (p Plan) CheckColumns(columns []Column) error {
	from := make(map[string]string, len(columns))
	attributes := make([]string, 0, len(columns))
	for _, c := range columns {
		how := p.Columns[c.Name]
		attribute := cmp.Or(how.As, c.Name)
		if other, taken := from[attribute]; taken {
			return &PlanError{Field: "columns." + c.Name + ".as", Message: fmt.Sprintf("column %q is stored as attribute %q, and so is column %q", c.Name, attribute, other), Remedy: "give one of them another name"}
		}
		from[attribute], attributes = c.Name, append(attributes, attribute)
		if how.Encode == "map" && c.Kind != JSON && c.Kind != List {
			return &PlanError{Field: "columns." + c.Name + ".encode", Message: fmt.Sprintf("column %q is no JSON, which alone can become a map", c.Name), Remedy: "leave it out"}
		}
	}
	for _, key := range []struct{ field, attribute string }{{"sink.key.partition", p.Sink.Key.Partition}, {"sink.key.sort", p.Sink.Key.Sort}} {
		if key.attribute == "" || from[key.attribute] != "" {
			continue
		}
		refused := &PlanError{Field: key.field, Message: fmt.Sprintf("no column is stored as attribute %q", key.attribute), Remedy: "name one that is"}
		if similar := spelling.Nearest(key.attribute, attributes); similar != "" {
			refused.Remedy = fmt.Sprintf("did you mean %q?", similar)
		}
		return refused
	}
	return nil
}

// KeyKinds returns what the values of the sink's key are, by attribute.
func (p Plan) KeyKinds(columns []Column) map[string]Kind {
	kinds := make(map[string]Kind, 2)
	for _, c := range columns {
		if attribute := cmp.Or(p.Columns[c.Name].As, c.Name); attribute == p.Sink.Key.Partition || attribute == p.Sink.Key.Sort {
			kinds[attribute] = c.Kind
		}
	}
	return kinds
}
