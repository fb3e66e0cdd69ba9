package shard

import (
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// A fence is what a write transaction has to pass: it locks the shard's row in
// shard_fence, shared, and finds there the epoch that the map has. It comes before
// the first statement, and where that is a query together with it, because each
// round trip costs both sides more than most statements do.
type fence struct {
	text  string
	epoch uint64    // of the map
	now   time.Time // the database's clock; zero: not passed yet
	err   error     // why it cannot be passed
}

func (f *fence) passed() bool { return f.err == nil && !f.now.IsZero() }

// enter passes the fence unless that was tried.
func (f *fence) enter(r *Reader) error {
	if f.err != nil || f.passed() {
		return f.err
	}
	rows, err := r.conn.QueryContext(r.ctx, f.text, r.shard)
	if err != nil {
		f.err = err
		return err
	}
	defer rows.Close()
	f.read(rows, r.shard)
	return f.err
}

// query passes the fence and runs a query, in one round trip where the database
// can.
func (f *fence) query(r *Reader, text string, args []any) (*sql.Rows, error) {
	if r.dialect != MariaDB || f.err != nil {
		if err := f.enter(r); err != nil {
			return nil, err
		}
		return r.conn.QueryContext(r.ctx, text, args...)
	}
	if _, err := r.conn.ExecContext(waiting(r.ctx, ForNothing), f.text, r.shard); err != nil {
		f.err = err
		return nil, err
	}
	rows, err := r.conn.QueryContext(r.ctx, text, args...)
	if err != nil {
		f.err = err
		return nil, err
	}
	f.read(rows, r.shard)
	if f.err == nil && !rows.NextResultSet() {
		f.err = errors.Join(rows.Err(), rows.Close())
		if f.err == nil {
			f.err = errOneAnswer
		}
	}
	if f.err != nil {
		rows.Close()
		return nil, f.err
	}
	return rows, nil
}

var errOneAnswer = errors.New("shard: the database answered the fence and not the query with it")

// read takes the database's answer to the fence.
func (f *fence) read(rows *sql.Rows, s Shard) {
	var there uint64
	var now clock
	if !rows.Next() {
		if f.err = rows.Err(); f.err == nil {
			f.err = fmt.Errorf("shard %d: %w", s, ErrMoved)
		}
		return
	}
	if f.err = rows.Scan(&there, &now); f.err != nil {
		return
	}
	if there != f.epoch {
		f.err = fmt.Errorf("shard %d: %w: epoch %d there, %d in the map", s, ErrMoved, there, f.epoch)
		return
	}
	f.now = now.UTC()
}

// A clock is what a database says the time is: a time, or ms since 1970.
type clock struct{ time.Time }

// Scan takes what the driver has.
func (c *clock) Scan(value any) error {
	switch v := value.(type) {
	case time.Time:
		c.Time = v
	case int64:
		c.Time = time.UnixMilli(v)
	default:
		return fmt.Errorf("shard: a time is %T in the database", value)
	}
	return nil
}
