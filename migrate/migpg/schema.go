package migpg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/internal/spelling"
	"github.com/tallystick/tallystick/migrate"
)

// A column is one of the table.
type column struct {
	name    string
	typ     string // in pg_type, of what a domain is made of; of the elements of an array
	array   bool
	enum    bool
	known   bool   // typ is PostgreSQL's own, or citext
	printed string // as people write the type
	oid     uint32 // that results are described with
	notNull bool
	codec   codec
}

// A schema is what is read of a table.
type schema struct {
	oid     uint32
	schema  string
	table   string
	bare    bool     // the table's name alone means this one
	kind    string   // as in pg_class.relkind
	names   []string // of all columns
	columns []column // that are read, in the order of the table
	key     []int    // indexes of the key's columns
	version int      // index of the version's column; -1: none
}

// load reads the schema of the plan's table. What cannot be read is an error
// that joins all [migrate.Finding]s.
func load(ctx context.Context, db querier, plan migrate.Plan) (*schema, error) {
	s, err := find(ctx, db, plan.Source.Table)
	if err != nil {
		return nil, err
	}
	all, err := columnsOf(ctx, db, s.oid)
	if err != nil {
		return nil, err
	}
	s.version = -1
	for _, c := range all {
		s.names = append(s.names, c.name)
		if !wanted(plan, c.name) {
			continue
		}
		if c.name == plan.Write.Version {
			s.version = len(s.columns)
		}
		s.columns = append(s.columns, c)
	}
	for _, name := range plan.Source.Key {
		s.key = append(s.key, slices.IndexFunc(s.columns, func(c column) bool { return c.name == name }))
	}
	return s, s.check(plan)
}

// wanted reports whether a column is read.
func wanted(plan migrate.Plan, name string) bool {
	if len(plan.Columns) == 0 || slices.Contains(plan.Source.Key, name) || name == plan.Write.Version {
		return true
	}
	_, listed := plan.Columns[name]
	return listed || name == plan.Sink.Key.Partition || name == plan.Sink.Key.Sort
}

// find returns the table that name means.
func find(ctx context.Context, db querier, name string) (*schema, error) {
	s := &schema{}
	err := db.QueryRow(ctx, `select c.oid, n.nspname, c.relname, c.relkind::text,
		coalesce(to_regclass(quote_ident(c.relname)) = c.oid, not exists (select from pg_class o where o.relname = c.relname and o.relkind in ('r', 'p', 'm', 'v', 'f') and o.oid <> c.oid))
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass($1)`, quoted(name)).Scan(&s.oid, &s.schema, &s.table, &s.kind, &s.bare)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, migrate.Finding{Severity: migrate.Refusal, Field: "source.table", Message: fmt.Sprintf("table %q does not exist, or this user may not see it", name),
			Remedy: "check the name and the database, or write schema.table"}
	case err != nil:
		return nil, failed("find table", err)
	case !strings.Contains("rpm", s.kind):
		return nil, migrate.Finding{Severity: migrate.Refusal, Field: "source.table", Message: fmt.Sprintf("%q is not a table", name),
			Remedy: "name a table, a partitioned table or a materialized view"}
	}
	return s, nil
}

// quoted returns the identifier for "table" or "schema.table", as they are
// spelled.
func quoted(name string) string { return pgx.Identifier(strings.SplitN(name, ".", 2)).Sanitize() }

// columnSQL follows domains to what they are made of, for columns and for the
// elements of arrays.
const columnSQL = `
with recursive made(name, n, not_null, printed, oid, depth) as (
	select a.attname, a.attnum, a.attnotnull, format_type(a.atttypid, a.atttypmod), a.atttypid, 0
	from pg_attribute a where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped
	union all
	select m.name, m.n, m.not_null, m.printed, t.typbasetype, depth + 1 from made m join pg_type t on t.oid = m.oid where t.typtype = 'd'
), base as (
	select distinct on (n) m.*, e.oid elem from made m left join pg_type e on e.typarray = m.oid order by n, depth desc
), element(n, oid, depth) as (
	select n, coalesce(elem, oid), 0 from base
	union all
	select e.n, t.typbasetype, e.depth + 1 from element e join pg_type t on t.oid = e.oid where t.typtype = 'd'
), made_of as (
	select distinct on (n) n, oid from element order by n, depth desc
)
select b.name, t.typname, b.elem is not null, t.typtype = 'e', t.typnamespace = 'pg_catalog'::regnamespace or t.typname = 'citext', b.printed, b.oid, b.not_null
from base b join made_of m using (n) join pg_type t on t.oid = m.oid order by b.n`

func columnsOf(ctx context.Context, db querier, table uint32) ([]column, error) {
	rows, err := db.Query(ctx, columnSQL, table)
	if err != nil {
		return nil, failed("read columns", err)
	}
	columns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) {
		err = row.Scan(&c.name, &c.typ, &c.array, &c.enum, &c.known, &c.printed, &c.oid, &c.notNull)
		c.codec = c.choose()
		return c, err
	})
	return columns, failed("read columns", err)
}

// choose returns how the column is read, nil if it cannot be.
func (c column) choose() codec {
	element := codecs[c.typ]
	switch {
	case c.enum:
		element = text
	case !c.known || element == nil:
		return nil
	}
	switch {
	case c.array:
		return arrayOf(element)
	case c.typ == "bytea":
		return rawBytes
	}
	return element
}

// binary reports whether the column is read in binary form.
func (c column) binary() bool { return c.typ == "bytea" && !c.array }

// casts has, for each type a key may have, the type that a parameter is cast to.
var casts = map[string]string{
	"int2": "int2", "int4": "int4", "int8": "int8", "numeric": "numeric",
	"text": "text", "varchar": "text", "bpchar": "bpchar", "uuid": "uuid",
	"timestamptz": "timestamptz", "timestamp": "timestamp", "date": "date",
}

// axes has the types of the first key column.
var axes = map[migrate.By][]string{
	migrate.ByULID:      {"text", "varchar", "bpchar"},
	migrate.ByUUIDv7:    {"uuid", "text", "varchar", "bpchar"},
	migrate.ByTimestamp: {"timestamptz"},
	migrate.ByInteger:   {"int2", "int4", "int8"},
}

var integers = axes[migrate.ByInteger]

// check returns what makes the table unreadable.
func (s *schema) check(plan migrate.Plan) error {
	return errors.Join(s.checkColumns(plan), s.checkKey(plan), s.checkVersion(plan))
}

func (s *schema) checkColumns(plan migrate.Plan) error {
	var errs []error
	for _, c := range s.columns {
		if c.codec == nil {
			errs = append(errs, migrate.Finding{Severity: migrate.Refusal, Field: "columns." + c.name, Message: "type " + c.printed + " cannot be migrated",
				Remedy: "list the other columns in the plan, or add a generated column of a type that can"})
		}
	}
	for name := range plan.Columns {
		if !slices.ContainsFunc(s.columns, func(c column) bool { return c.name == name }) {
			errs = append(errs, s.missing("columns."+name, name))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

func (s *schema) checkKey(plan migrate.Plan) error {
	var errs []error
	for n, i := range s.key {
		if i < 0 {
			errs = append(errs, s.missing("source.key", plan.Source.Key[n]))
			continue
		}
		c, allowed := s.columns[i], axes[plan.Slots.By]
		switch {
		case c.array || c.enum || !c.known || casts[c.typ] == "":
			errs = append(errs, migrate.Finding{Severity: migrate.Refusal, Field: "source.key", Message: fmt.Sprintf("column %q is of type %s, which cannot be part of a key", c.name, c.printed),
				Remedy: "use a unique index of integers, texts, uuids, dates and timestamps"})
		case n == 0 && !slices.Contains(allowed, c.typ):
			errs = append(errs, migrate.Finding{Severity: migrate.Refusal, Field: "slots.by", Message: fmt.Sprintf("column %q is of type %s, not %s", c.name, c.printed, strings.Join(allowed, " or ")),
				Remedy: "choose what the key is cut by: ulid, uuidv7, timestamp (with time zone) or integer"})
		}
	}
	return errors.Join(errs...)
}

func (s *schema) checkVersion(plan migrate.Plan) error {
	if plan.Write.Version == "" {
		return nil
	}
	if s.version < 0 {
		return s.missing("write.version", plan.Write.Version)
	}
	c := s.columns[s.version]
	if c.array || !c.known || !slices.Contains(integers, c.typ) && c.typ != "timestamptz" && c.typ != "timestamp" {
		return migrate.Finding{Severity: migrate.Refusal, Field: "write.version", Message: fmt.Sprintf("column %q is of type %s", c.name, c.printed),
			Remedy: "a version is an integer or a timestamp"}
	}
	if !c.notNull {
		return migrate.Finding{Severity: migrate.Refusal, Field: "write.version", Message: fmt.Sprintf("column %q may be null", c.name),
			Remedy: fmt.Sprintf("alter table %s alter %s set not null", s.name(), pgx.Identifier{c.name}.Sanitize())}
	}
	return nil
}

// missing returns the refusal of a column that the table does not have.
func (s *schema) missing(field, column string) error {
	remedy := "correct the name"
	if similar := spelling.Nearest(column, s.names); similar != "" {
		remedy = fmt.Sprintf("did you mean %q?", similar)
	}
	return migrate.Finding{Severity: migrate.Refusal, Field: field, Message: fmt.Sprintf("the table has no column %q", column), Remedy: remedy}
}

// name returns the table's identifier.
func (s *schema) name() string { return pgx.Identifier{s.schema, s.table}.Sanitize() }

// keyColumns returns the columns of the key.
func (s *schema) keyColumns() []column {
	columns := make([]column, len(s.key))
	for n, i := range s.key {
		columns[n] = s.columns[i]
	}
	return columns
}

// Columns returns the columns that are read.
func (s *Source) Columns() []migrate.Column {
	all := make([]migrate.Column, len(s.schema.columns))
	for i, c := range s.schema.columns {
		all[i] = migrate.Column{Name: c.name, Kind: c.kind()}
	}
	return all
}

// kind returns what the column's values are.
func (c column) kind() migrate.Kind {
	switch {
	case c.array:
		return migrate.List
	case c.enum:
		return migrate.Text
	}
	switch c.typ {
	case "bool":
		return migrate.Bool
	case "bytea":
		return migrate.Bytes
	case "int2", "int4", "int8", "oid", "numeric", "float4", "float8":
		return migrate.Number
	case "json", "jsonb":
		return migrate.JSON
	}
	return migrate.Text
}
