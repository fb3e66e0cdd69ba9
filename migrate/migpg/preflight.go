package migpg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/migrate"
)

// Preflight implements [migrate.Preflighter]. It asks how pages would be read
// and then reads keys at both ends of the table and some of a sample between.
// What makes the table unreadable at all is an error of [Open].
func (s *Source) Preflight(ctx context.Context) ([]migrate.Finding, error) {
	found := s.checkNulls()
	for _, look := range []func(context.Context) ([]migrate.Finding, error){
		s.checkServer, s.checkRights, s.checkOutbox, s.checkOrder, s.checkUnique,
	} {
		more, err := look(ctx)
		found = append(found, more...)
		switch {
		case sqlState(err, "42501"):
			found = append(found, migrate.Finding{Severity: migrate.Refusal, Field: "source.dsn", Message: err.Error(), Remedy: "grant the right to this user, or use the table's owner"})
		case err != nil:
			return found, err
		}
	}
	if slices.ContainsFunc(found, func(f migrate.Finding) bool { return f.Severity == migrate.Refusal }) {
		return found, nil // reading might sort the whole table
	}
	more, err := s.checkContent(ctx)
	return append(found, more...), err
}

// checkContent looks at what is in the table.
func (s *Source) checkContent(ctx context.Context) ([]migrate.Finding, error) {
	extent, err := s.Extent(ctx)
	if err != nil {
		return nil, err
	}
	found := []migrate.Finding{{Severity: migrate.Note, Field: "source.table",
		Message: fmt.Sprintf("about %d rows of %d bytes, keys from %s to %s", extent.Rows, extent.RowBytes, extent.Min, extent.Max)}}
	for _, look := range []func(context.Context, migrate.Extent) ([]migrate.Finding, error){s.checkPages, s.checkSample} {
		more, err := look(ctx, extent)
		found = append(found, more...)
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// checkNulls warns of rows that pages would pass over, and of versions that
// two changes may share.
func (s *Source) checkNulls() []migrate.Finding {
	var found []migrate.Finding
	for _, c := range s.schema.keyColumns() {
		if !c.notNull {
			found = append(found, migrate.Finding{Severity: migrate.Refusal, Field: "source.key", Message: fmt.Sprintf("column %q may be null: such rows would not be read", c.name),
				Remedy: fmt.Sprintf("alter table %s alter %s set not null", s.schema.name(), identifier(c))})
		}
	}
	if v := s.schema.version; v >= 0 && !slices.Contains(integers, s.schema.columns[v].typ) {
		found = append(found, migrate.Finding{Severity: migrate.Warning, Field: "write.version", Message: fmt.Sprintf("column %q is a time: two changes of a row within a microsecond, or across a clock set back, look like one", s.schema.columns[v].name),
			Remedy: "use an integer that each change of a row raises"})
	}
	return found
}

// checkUnique refuses a table without a unique index that walks in the order
// of the key.
func (s *Source) checkUnique(ctx context.Context) ([]migrate.Finding, error) {
	unique, err := s.unique(ctx)
	if err != nil {
		return nil, err
	}
	if !unique {
		return []migrate.Finding{{Severity: migrate.Refusal, Field: "source.key", Message: "no unique index covers exactly these columns, or some of them: rows of the same key would be passed over",
			Remedy: s.createIndex()}}, nil
	}
	plan, err := s.explain(ctx, s.query.probe(migrate.Range{}, nil, s.query.oldest, 0))
	if flaw := plan.detour(); err == nil && flaw != "" {
		return []migrate.Finding{s.badIndex(flaw)}, nil
	}
	return nil, err
}

func (s *Source) badIndex(flaw string) migrate.Finding {
	return migrate.Finding{Severity: migrate.Refusal, Field: "source.key", Message: "a page " + flaw, Remedy: s.createIndex()}
}

// checkPages looks at the plans of what will be run.
func (s *Source) checkPages(ctx context.Context, extent migrate.Extent) ([]migrate.Finding, error) {
	for _, q := range s.samples(extent) {
		plan, err := s.explain(ctx, q)
		if err != nil {
			return nil, err
		}
		flaw := plan.flaw()
		if extent.Rows < smallTable { // reading all of its index is the best one can do
			flaw = plan.detour()
		}
		if flaw != "" {
			return []migrate.Finding{s.badIndex(flaw)}, nil
		}
	}
	return nil, nil
}

// smallTable is how many rows fit a page or two of an index.
const smallTable = 1_000

// unique reports whether no two rows can have the same key.
func (s *Source) unique(ctx context.Context) (unique bool, err error) {
	err = s.pool.QueryRow(ctx, `select exists (select from pg_index i where i.indrelid = $1 and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
		and (select array_agg(a.attname::text) from pg_attribute a where a.attrelid = $1 and a.attnum = any((i.indkey::int2[])[0:i.indnkeyatts - 1])) <@ $2::text[])`,
		s.schema.oid, s.plan.Source.Key).Scan(&unique)
	return unique, failed("read indexes", err)
}

func (s *Source) createIndex() string {
	return fmt.Sprintf("create unique index concurrently on %s (%s)", s.schema.name(), list(s.schema.keyColumns(), ""))
}

// samples returns the first page of a slot, the next page and a look-up.
func (s *Source) samples(extent migrate.Extent) []query {
	k := extent.Max
	if k == nil {
		return nil
	}
	axis, r := s.plan.Axis(), migrate.Range{Lo: k[:1]}
	if i, err := axis.Index(k); err == nil {
		r = migrate.Range{Lo: axis.Bound(i), Hi: axis.Bound(i + 1)}
	}
	return []query{
		s.query.page(r, nil, s.plan.PageRows),
		s.query.page(r, k, s.plan.PageRows),
		s.query.probe(r, nil, s.query.oldest, 0),
		s.query.get([]migrate.Key{k, extent.Min}, false),
	}
}

// checkServer looks at what kind of server it is.
func (s *Source) checkServer(ctx context.Context) ([]migrate.Finding, error) {
	var standby, children bool
	err := s.pool.QueryRow(ctx, `select pg_is_in_recovery(),
		exists (select from pg_inherits where inhparent = $1) and $2 <> 'p'`, s.schema.oid, s.schema.kind).Scan(&standby, &children)
	var found []migrate.Finding
	if standby {
		found = append(found, replica("is a replica: open transactions cannot be awaited there, nor rows locked").(migrate.Finding))
	}
	if children {
		found = append(found, migrate.Finding{Severity: migrate.Refusal, Field: "source.table", Message: "other tables inherit from it: keys are unique within each only",
			Remedy: "migrate each table by a plan of its own"})
	}
	return found, failed("look at server", err)
}

// checkRights looks at what this user may do.
func (s *Source) checkRights(ctx context.Context) ([]migrate.Finding, error) {
	var hidden, locks bool
	err := s.pool.QueryRow(ctx, "select row_security_active($1::oid), has_any_column_privilege($1::oid, 'UPDATE')", s.schema.oid).Scan(&hidden, &locks)
	var found []migrate.Finding
	if hidden {
		found = append(found, migrate.Finding{Severity: migrate.Refusal, Field: "source.table", Message: "row-level security hides rows from this user",
			Remedy: "use the table's owner or a user with bypassrls"})
	}
	if !locks && s.plan.Write.Mode == migrate.Guarded {
		found = append(found, migrate.Finding{Severity: migrate.Refusal, Field: "source.dsn", Message: "this user may not lock rows, which guarded does where versions are equal and contents are not",
			Remedy: fmt.Sprintf("grant update on %s to this user; nothing is ever updated", s.schema.name())})
	}
	return found, failed("look at rights", err)
}

// checkOutbox looks at the table that double-writers note their keys in.
func (s *Source) checkOutbox(ctx context.Context) ([]migrate.Finding, error) {
	var allowed *bool // nil: there is no table
	var whole bool
	err := s.pool.QueryRow(ctx, `select has_table_privilege(o, 'SELECT') and has_table_privilege(o, 'DELETE'),
		(select count(*) from pg_attribute where attrelid = o and attname in ('ref', 'version') and not attisdropped) = 2
		from (select to_regclass('tallystick_outbox') o) t`).Scan(&allowed, &whole)
	switch {
	case err != nil:
		return nil, failed("look at outbox", err)
	case allowed == nil:
		return []migrate.Finding{{Severity: migrate.Note, Message: "there is no table tallystick_outbox: what a double-writer leaves undone is found by verification only"}}, nil
	case !*allowed:
		return []migrate.Finding{{Severity: migrate.Refusal, Message: "this user may not read and clear tallystick_outbox", Remedy: "grant select, delete on tallystick_outbox to this user"}}, nil
	case !whole:
		return []migrate.Finding{{Severity: migrate.Note, Message: "tallystick_outbox has no columns ref and version, by which a deletion that was left is mended",
			Remedy: "alter table tallystick_outbox add if not exists ref text, add if not exists version bigint; and let the double-writer fill them"}}, nil
	}
	return s.readOutbox(ctx)
}

// readOutbox refuses a table of that name that has not the columns of notes.
func (s *Source) readOutbox(ctx context.Context) ([]migrate.Finding, error) {
	_, _, err := s.Newest(ctx)
	if err == nil {
		_, _, err = s.Pending(ctx, 1)
	}
	if err == nil || errors.Is(err, migrate.ErrTransient) {
		return nil, err
	}
	return []migrate.Finding{{Severity: migrate.Refusal, Message: "tallystick_outbox cannot be read: " + err.Error(),
		Remedy: "give it the columns of migpg.OutboxDDL: id bigint, table_name, key and ref text, version bigint"}}, nil
}

// checkOrder refuses a collation in which ULIDs or UUIDs are not in the order
// of their time.
func (s *Source) checkOrder(ctx context.Context) ([]migrate.Finding, error) {
	c := s.schema.keyColumns()[0]
	if !slices.Contains(axes[migrate.ByULID], c.typ) {
		return nil, nil
	}
	var collation string
	err := s.pool.QueryRow(ctx, `select coalesce((select quote_ident(n.nspname) || '.' || quote_ident(l.collname) from pg_attribute a join pg_collation l on l.oid = a.attcollation
		join pg_namespace n on n.oid = l.collnamespace where a.attrelid = $1 and a.attname = $2), '')`, s.schema.oid, c.name).Scan(&collation)
	if err != nil || collation == "" {
		return nil, failed("read collation", err)
	}
	var bytewise bool
	err = s.pool.QueryRow(ctx, "select array_agg(w order by w collate "+collation+") = array_agg(w order by w collate \"C\") from unnest($1::text[]) w",
		orderWords(s.plan.Axis())).Scan(&bytewise)
	if err != nil || bytewise {
		return nil, failed("compare letters", err)
	}
	return []migrate.Finding{{Severity: migrate.Refusal, Field: "source.key", Message: fmt.Sprintf("the collation %s of column %q does not sort digits and letters as bytes: slots would not be ranges", collation, c.name),
		Remedy: `give the column the collation "C"`}}, nil
}

// orderWords are words that a collation has to sort as bytes: every character
// of a key, alone and before a digit, which some collations take for a number.
func orderWords(axis migrate.Axis) []string {
	alphabet := crockford
	switch {
	case axis.By == migrate.ByUUIDv7:
		alphabet = "0123456789abcdef"
	case axis.Lower:
		alphabet = strings.ToLower(crockford)
	}
	var words []string
	for _, c := range alphabet {
		words = append(words, string(c), string(c)+"0")
	}
	return words
}
