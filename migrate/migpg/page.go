package migpg

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/migrate"
)

// Page implements [migrate.Source]. after must be a key of r, or nil.
func (s *Source) Page(ctx context.Context, r migrate.Range, after migrate.Key, limit, maxBytes int) (migrate.Page, error) {
	p := pageBuilder{limit: limit, maxBytes: maxBytes}
	for !p.full() && !p.End {
		n := p.ask(s.rowBytes.Load())
		if err := s.readInto(ctx, &p, s.query.page(r, after, n), n); err != nil {
			return migrate.Page{}, failed("read page", err)
		}
		s.rowBytes.Store(p.average())
		if len(p.Rows) > 0 {
			after = p.Rows[len(p.Rows)-1].Key
		}
	}
	return p.Page, nil
}

// A pageBuilder collects a page.
type pageBuilder struct {
	migrate.Page
	limit, maxBytes int
	bytes           int
}

func (p *pageBuilder) full() bool {
	return len(p.Rows) >= p.limit || len(p.Rows) > 0 && p.maxBytes > 0 && p.bytes >= p.maxBytes
}

func (p *pageBuilder) average() int64 { return int64(p.bytes / max(1, len(p.Rows))) }

// firstRows are asked for while nothing is known of their size.
const firstRows = 64

// ask returns how many rows to ask for: what the page has room for if they are
// as large as those before. A server sends all that was asked for.
func (p *pageBuilder) ask(rowBytes int64) int {
	n := p.limit - len(p.Rows)
	switch {
	case p.maxBytes <= 0:
		return n
	case rowBytes == 0:
		return min(n, firstRows)
	}
	return min(n, 1+int(int64(p.maxBytes-p.bytes)/rowBytes))
}

// readInto adds the rows of q, which asks for n, until the page is full.
func (s *Source) readInto(ctx context.Context, p *pageBuilder, q query, n int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rows, err := s.rows(ctx, s.pool, q, s.schema.columns)
	if err != nil {
		return err
	}
	defer rows.Close()
	read := 0
	for !p.full() && rows.Next() {
		row, err := s.schema.decode(rows.RawValues())
		if err != nil {
			return err
		}
		read++
		p.Rows = append(p.Rows, row)
		p.bytes += row.Size()
	}
	if read < n && p.full() {
		if drain(rows, p.maxBytes) {
			cancel() // and with it the connection
			return nil
		}
		return rows.Err()
	}
	p.End = read < n
	rows.Close()
	return rows.Err()
}

// drain passes over the rows that the server still sends, and reports whether
// they are more than some bytes.
func drain(rows pgx.Rows, most int) (more bool) {
	for rows.Next() {
		for _, v := range rows.RawValues() {
			most -= len(v)
		}
		if most < 0 {
			return true
		}
	}
	return false
}

// rows runs a query whose results are columns.
func (s *Source) rows(ctx context.Context, db querier, q query, columns []column) (pgx.Rows, error) {
	formats := make(pgx.QueryResultFormats, len(columns))
	for i, c := range columns {
		if c.binary() {
			formats[i] = pgx.BinaryFormatCode
		}
	}
	rows, err := db.Query(ctx, q.sql, append([]any{formats}, q.args...)...)
	if err != nil {
		return nil, err
	}
	for i, f := range rows.FieldDescriptions() {
		if f.DataTypeOID != columns[i].oid {
			rows.Close()
			return nil, &rowError{columns[i].name, errors.New("its type was changed; begin again")}
		}
	}
	return rows, nil
}

// decode makes a row of what the server sent. All texts of a row share one
// piece of memory.
func (s *schema) decode(raw [][]byte) (migrate.Row, error) {
	all, ends := joined(raw)
	row := migrate.Row{Key: make(migrate.Key, len(s.key)), Fields: make([]migrate.Field, len(s.columns))}
	begin := 0
	for i, c := range s.columns {
		row.Fields[i].Name = c.name
		if raw[i] != nil {
			v, err := c.codec(all[begin:ends[i]])
			if err != nil {
				return row, &rowError{c.name, err}
			}
			row.Fields[i].Value = v
		}
		begin = ends[i]
	}
	for n, i := range s.key {
		row.Key[n] = row.Fields[i].Value.Text
	}
	return row, s.setVersion(&row)
}

func joined(raw [][]byte) (all string, ends []int) {
	size := 0
	ends = make([]int, len(raw))
	for i, v := range raw {
		size += len(v)
		ends[i] = size
	}
	var b strings.Builder
	b.Grow(size)
	for _, v := range raw {
		b.Write(v)
	}
	return b.String(), ends
}

func (s *schema) setVersion(row *migrate.Row) error {
	if s.version < 0 {
		return nil
	}
	var err error
	if row.Version, err = versionOf(row.Fields[s.version].Value); err != nil {
		return &rowError{s.columns[s.version].name, err}
	}
	return nil
}

// Nearest implements [migrate.Source].
func (s *Source) Nearest(ctx context.Context, r migrate.Range) (migrate.Key, bool, error) {
	return s.probe(ctx, s.query.probe(r, nil, s.query.oldest, 0))
}

// probe returns the key that a query finds.
func (s *Source) probe(ctx context.Context, q query) (migrate.Key, bool, error) {
	rows, err := s.rows(ctx, s.pool, q, s.schema.keyColumns())
	if err != nil {
		return nil, false, failed("look up key", err)
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, false, failed("look up key", rows.Err())
	}
	k, err := s.schema.decodeKey(rows.RawValues())
	if err != nil {
		return nil, false, failed("look up key", err)
	}
	rows.Close()
	return k, true, failed("look up key", rows.Err())
}

// decodeKey makes a key of what the server sent.
func (s *schema) decodeKey(raw [][]byte) (migrate.Key, error) {
	k := make(migrate.Key, len(raw))
	for n, i := range s.key {
		v, err := s.columns[i].codec(string(raw[n]))
		if err != nil {
			return nil, &rowError{s.columns[i].name, err}
		}
		k[n] = v.Text
	}
	return k, nil
}

// Get implements [migrate.Source]. With lock it fails on a replica and without
// the right to update the table.
func (s *Source) Get(ctx context.Context, keys []migrate.Key, lock bool) ([]migrate.Row, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	for _, k := range keys {
		if len(k) != len(s.schema.key) {
			return nil, fmt.Errorf("migpg: read rows: key %s has %d parts, not %d", k, len(k), len(s.schema.key))
		}
	}
	rows, err := s.get(ctx, keys, lock)
	switch {
	case lock && onReplica(err):
		return nil, replica("rows cannot be locked on a replica")
	case notOfType(err) && len(keys) == 1:
		return nil, nil // no row can have that key
	case notOfType(err):
		return s.getHalves(ctx, keys, lock)
	}
	return rows, failed("read rows", err)
}

// getHalves reads keys of which one is none of the column's type. A sink may hold
// an item that was never a row.
func (s *Source) getHalves(ctx context.Context, keys []migrate.Key, lock bool) ([]migrate.Row, error) {
	some, err := s.Get(ctx, keys[:len(keys)/2], lock)
	if err != nil {
		return nil, err
	}
	rest, err := s.Get(ctx, keys[len(keys)/2:], lock)
	return append(some, rest...), err
}

func (s *Source) get(ctx context.Context, keys []migrate.Key, lock bool) (rows []migrate.Row, err error) {
	options := pgx.TxOptions{AccessMode: pgx.ReadOnly}
	if lock {
		options.AccessMode = pgx.ReadWrite
	}
	err = pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) (err error) {
		rows, err = s.collect(ctx, tx, s.query.get(keys, lock))
		return err
	})
	return rows, err
}

func (s *Source) collect(ctx context.Context, db querier, q query) ([]migrate.Row, error) {
	found, err := s.rows(ctx, db, q, s.schema.columns)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (migrate.Row, error) { return s.schema.decode(row.RawValues()) })
}

// Now implements [migrate.Source].
func (s *Source) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.pool.QueryRow(ctx, "select clock_timestamp()").Scan(&now)
	return now.UTC(), failed("read clock", err)
}

// Extent implements [migrate.Source]. The numbers are the planner's.
func (s *Source) Extent(ctx context.Context) (migrate.Extent, error) {
	var e migrate.Extent
	var err error
	if e.Min, _, err = s.probe(ctx, s.query.probe(migrate.Range{}, nil, true, 0)); err != nil || e.Min == nil {
		return e, err
	}
	if e.Max, _, err = s.probe(ctx, s.query.probe(migrate.Range{}, nil, false, 0)); err != nil {
		return e, err
	}
	plan, err := s.explain(ctx, query{sql: "select " + list(s.schema.columns, "") + " from " + s.schema.name()})
	e.Rows, e.RowBytes = plan.Rows, plan.Width
	return e, err
}
