package migrate_test

import (
	"strings"
	"testing"

	"github.com/tallystick/tallystick/migrate"
)

func TestCheckColumnsRefusesWhatNoSinkCanTake(t *testing.T) {
	columns := []migrate.Column{{"id", migrate.Number}, {"customer", migrate.Text}, {"data", migrate.JSON}, {"tags", migrate.List}}
	key := migrate.Plan{}
	key.Sink.Key.Partition, key.Sink.Key.Sort = "customer", "id"
	with := func(column string, how migrate.ColumnPlan) migrate.Plan {
		p := key
		p.Columns = map[string]migrate.ColumnPlan{column: how}
		return p
	}
	misspelt := key
	misspelt.Sink.Key.Partition = "custmer"
	for name, c := range map[string]struct {
		plan migrate.Plan
		want string // "": it is fine
	}{
		"as they are":            {key, ""},
		"JSON as a map":          {with("data", migrate.ColumnPlan{Encode: "map"}), ""},
		"lists of JSON":          {with("tags", migrate.ColumnPlan{Encode: "map"}), ""},
		"a number as a map":      {with("id", migrate.ColumnPlan{Encode: "map"}), `columns.id.encode: column "id" is no JSON`},
		"two as one attribute":   {with("data", migrate.ColumnPlan{As: "id"}), `columns.data.as: column "data" is stored as attribute "id", and so is column "id"`},
		"the key misspelt":       {misspelt, `sink.key.partition: no column is stored as attribute "custmer" (did you mean "customer"?)`},
		"the key under its name": {with("customer", migrate.ColumnPlan{As: "who"}), `sink.key.partition: no column is stored as attribute "customer"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.plan.CheckColumns(columns)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if kinds := key.KeyKinds(columns); len(kinds) != 2 || kinds["id"] != migrate.Number || kinds["customer"] != migrate.Text {
		t.Errorf("%v", kinds)
	}
}
