package shardsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tallystick/tallystick/shard"
)

// A guard is a connector whose connections refuse what is not routed and tell
// errors apart. It is the one place that sees every statement and every error,
// those of rows included.
type guard struct {
	driver.Connector
	errors   driverErrors
	timeout  time.Duration // of making a connection
	implicit bool          // sessions begin a transaction by themselves
	together bool          // sessions take several statements as one text
}

// driverErrors reads the errors of a driver.
type driverErrors interface {
	// tell returns err as one of package shard's where it is one, and whether
	// the transaction it came from is over.
	tell(err error) (told error, over bool)
	// tellCommit is the same for a COMMIT.
	tellCommit(err error) error
	// refused reports whether err is a server's answer to a statement and cannot
	// be one to a COMMIT that was sent with it.
	refused(err error) bool
}

// Connect makes a guarded connection.
func (g *guard) Connect(ctx context.Context) (driver.Conn, error) {
	// Connections for those who wait for one are made without their deadline.
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	inner, err := g.Connector.Connect(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		told, _ := g.errors.tell(err)
		return nil, told
	}
	c, ok := inner.(fullConn)
	if !ok {
		inner.Close()
		return nil, fmt.Errorf("shardsql: the connections of %T lack an interface", g.Connector)
	}
	return &conn{fullConn: c, guard: g}, nil
}

// fullConn is what the connections of both drivers can do.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// A conn is a guarded connection.
type conn struct {
	fullConn
	guard  *guard
	inTx   bool
	over   error // why the transaction under way takes no more statements
	queue  queue // of the transaction under way
	broken bool  // not to be used again
}

// Unwrap returns the driver's own connection.
func (c *conn) Unwrap() driver.Conn { return c.fullConn }

// admit returns why a statement must not run, or nil.
func (c *conn) admit(ctx context.Context, text string) error {
	if c.over != nil {
		return c.over
	}
	if c.guard.together && strings.Contains(text, ";") {
		return errSeveral
	}
	return judge(text).check(ctx)
}

var errSeveral = errors.New("shardsql: a text has to be one statement, and values arguments: it contains a semicolon")

// told passes an error on as what it is.
func (c *conn) told(err error) error {
	if err == nil || err == io.EOF || err == driver.ErrSkip {
		return err
	}
	told, over := c.guard.errors.tell(err)
	if over && c.inTx {
		c.over = told
	}
	return told
}

func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.admit(ctx, text); err != nil {
		return nil, err
	}
	if c.wait(ctx, text, args) {
		return driver.RowsAffected(1), nil // as far as its caller is to know
	}
	text, args, together := c.queue.with(text, args)
	result, err := c.fullConn.ExecContext(ctx, text, args) // the answer to the last one
	if together {
		return result, c.failed(err)
	}
	return result, c.told(err)
}

func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.admit(ctx, text); err != nil {
		return nil, err
	}
	text, args, together := c.queue.with(text, args)
	r, err := c.fullConn.QueryContext(ctx, text, args)
	switch {
	case err != nil && together:
		return nil, c.failed(err)
	case err != nil:
		return nil, c.told(err)
	}
	return &rows{r, c}, nil
}

func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if err := c.admit(ctx, text); err != nil {
		return nil, err
	}
	s, err := c.fullConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, c.told(err)
	}
	return &stmt{s, c, text}, nil
}

func (c *conn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

// CheckNamedValue converts an argument as the driver wants it.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error { return checkBy(c.fullConn, v) }

func checkBy(inner any, v *driver.NamedValue) error {
	if checker, ok := inner.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *conn) Ping(ctx context.Context) error { return c.told(c.fullConn.Ping(ctx)) }

func (c *conn) IsValid() bool { return !c.broken && c.fullConn.IsValid() }

func (c *conn) ResetSession(ctx context.Context) error {
	if c.broken {
		return driver.ErrBadConn
	}
	return c.fullConn.ResetSession(ctx)
}

// A stmt is a prepared statement. It is checked again each time, because the
// call it runs for may be another's.
type stmt struct {
	driver.Stmt
	conn *conn
	text string
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.conn.admit(ctx, s.text); err != nil {
		return nil, err
	}
	result, err := s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	return result, s.conn.told(err)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.conn.admit(ctx, s.text); err != nil {
		return nil, err
	}
	r, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, s.conn.told(err)
	}
	return &rows{r, s.conn}, nil
}

var errNoContext = errors.New("shardsql: a statement needs a context")

func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errNoContext }
func (s *stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errNoContext }

// CheckNamedValue converts an argument as the driver wants it.
func (s *stmt) CheckNamedValue(v *driver.NamedValue) error { return checkBy(s.Stmt, v) }

// unavailable is what the end of a context is.
func unavailable(err error) error { return fmt.Errorf("%w: %w", shard.ErrUnavailable, err) }
