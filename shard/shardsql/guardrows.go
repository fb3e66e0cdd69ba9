package shardsql

import (
	"database/sql/driver"
	"io"
	"reflect"
)

// rows are rows whose errors are told apart. There are several results where
// queued statements have some.
type rows struct {
	driver.Rows
	conn *conn
}

func (r *rows) Next(dest []driver.Value) error { return r.conn.told(r.Rows.Next(dest)) }

func (r *rows) Close() error { return r.conn.told(r.Rows.Close()) }

// HasNextResultSet reports whether another statement of the text has answered.
func (r *rows) HasNextResultSet() bool {
	several, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && several.HasNextResultSet()
}

// NextResultSet goes on to the next statement's answer.
func (r *rows) NextResultSet() error {
	several, ok := r.Rows.(driver.RowsNextResultSet)
	if !ok {
		return io.EOF
	}
	return r.conn.told(several.NextResultSet())
}

// What the driver tells about a column, and zero where it tells nothing.

func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	if c, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return c.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	if c, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return c.ColumnTypeScanType(i)
	}
	return reflect.TypeFor[any]()
}

func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypeNullable); is {
		return c.ColumnTypeNullable(i)
	}
	return false, false
}

func (r *rows) ColumnTypeLength(i int) (length int64, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypeLength); is {
		return c.ColumnTypeLength(i)
	}
	return 0, false
}

func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypePrecisionScale); is {
		return c.ColumnTypePrecisionScale(i)
	}
	return 0, 0, false
}
