package migpg

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/migrate"
)

// queries makes SQL. Values are parameters, in text form, that are cast to the
// types of the columns; collations are never named, so that an index fits.
type queries struct {
	*schema
	oldest bool
}

// A query is SQL and its parameters.
type query struct {
	sql  string
	args []any
}

// param adds a parameter and returns how SQL names it.
func (q *query) param(value any, typ string) string {
	q.args = append(q.args, value)
	return fmt.Sprintf("$%d::%s", len(q.args), typ)
}

// page reads what is left of r beyond after, which lies in r and so stands for
// the end that it is nearer to: an index scan is given one condition on a side.
func (s queries) page(r migrate.Range, after migrate.Key, limit int) query {
	return s.walk(s.columns, r, after, s.oldest, 0, limit)
}

// probe reads the key that lies skip rows into what is left of r, from below
// if rising.
func (s queries) probe(r migrate.Range, after migrate.Key, rising bool, skip int) query {
	return s.walk(s.keyColumns(), r, after, rising, skip, 1)
}

func (s queries) walk(columns []column, r migrate.Range, after migrate.Key, rising bool, skip, limit int) query {
	var q query
	where := s.where(&q, r, after)
	q.sql = "select " + list(columns, "t.") + " from " + s.name() + " t" + where + " order by " + s.order(rising)
	if skip > 0 {
		q.sql += " offset " + q.param(skip, "int8")
	}
	q.sql += " limit " + q.param(limit, "int8")
	return q
}

// where returns the condition of what is left of r beyond after, in the order
// of the plan.
func (s queries) where(q *query, r migrate.Range, after migrate.Key) string {
	var conditions []string
	add := func(k migrate.Key, op string) {
		if k != nil {
			conditions = append(conditions, s.compare(q, k, op))
		}
	}
	switch {
	case after == nil:
		add(r.Lo, ">=")
		add(r.Hi, "<")
	case s.oldest:
		add(after, ">")
		add(r.Hi, "<")
	default:
		add(r.Lo, ">=")
		add(after, "<")
	}
	if len(conditions) == 0 {
		return ""
	}
	return " where " + strings.Join(conditions, " and ")
}

// compare returns the comparison of the key's first columns with k, which may
// have fewer parts.
func (s queries) compare(q *query, k migrate.Key, op string) string {
	columns := s.keyColumns()[:min(len(k), len(s.key))]
	names, params := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], params[i] = "t."+identifier(c), q.param(k[i], casts[c.typ])
	}
	if len(names) == 1 {
		return names[0] + " " + op + " " + params[0]
	}
	return "(" + strings.Join(names, ", ") + ") " + op + " (" + strings.Join(params, ", ") + ")"
}

func (s queries) order(rising bool) string {
	names := make([]string, len(s.key))
	for i, c := range s.keyColumns() {
		names[i] = "t." + identifier(c)
		if !rising {
			names[i] += " desc"
		}
	}
	return strings.Join(names, ", ")
}

// get reads the rows of keys.
func (s queries) get(keys []migrate.Key, lock bool) query {
	var q query
	var arrays, aliases, equal []string
	for i, c := range s.keyColumns() {
		arrays = append(arrays, q.param(arrayText(keys, i), casts[c.typ]+"[]"))
		aliases = append(aliases, fmt.Sprintf("k%d", i))
		equal = append(equal, fmt.Sprintf("t.%s = k.k%d", identifier(c), i))
	}
	q.sql = "select " + list(s.columns, "t.") + " from unnest(" + strings.Join(arrays, ", ") + ") k(" + strings.Join(aliases, ", ") + ")" +
		" join " + s.name() + " t on " + strings.Join(equal, " and ")
	if lock {
		q.sql += " for share of t"
	}
	return q
}

// arrayText returns the ith parts of keys as PostgreSQL writes an array.
func arrayText(keys []migrate.Key, i int) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	parts := make([]string, len(keys))
	for n, k := range keys {
		parts[n] = `"` + escape.Replace(k[i]) + `"`
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func list(columns []column, prefix string) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = prefix + identifier(c)
	}
	return strings.Join(names, ", ")
}

func identifier(c column) string { return pgx.Identifier{c.name}.Sanitize() }
