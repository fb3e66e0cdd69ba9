package migpg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/migrate"
)

// passing are the classes of SQLSTATE and the single ones that may pass by
// themselves.
var passing = []string{
	"08000", "08001", "08003", "08004", "08006", "08007", // connection; not 08P01, a violation of the protocol
	"40",                      // serialization, deadlock
	"53",                      // resources: connections, memory, disk
	"57P01", "57P02", "57P03", // the server stops, crashed, starts
	"57P05",          // the session was idle for too long
	"57014", "55P03", // statement_timeout, lock_timeout
	"25P03", "25P04", // transaction time-outs
	"58", // the system
}

// failed names the operation, and whether it may work when tried again. It
// keeps a finding as it is.
func failed(op string, err error) error {
	switch _, found := errors.AsType[migrate.Finding](err); {
	case err == nil || found:
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("migpg: %s: %w", op, err)
	case transient(err):
		return fmt.Errorf("migpg: %s: %w: %w", op, migrate.ErrTransient, err)
	}
	return fmt.Errorf("migpg: %s: %w", op, err)
}

// transient reports whether err may pass: by what the server says, and without
// a word from it unless the row itself was at fault.
func transient(err error) bool {
	e, said := errors.AsType[*pgconn.PgError](err)
	if !said {
		_, ours := errors.AsType[*rowError](err)
		return !ours
	}
	return forgottenPlan(err) || slices.ContainsFunc(passing, func(p string) bool { return strings.HasPrefix(e.Code, p) })
}

// forgottenPlan reports whether a statement was refused because the table was
// altered since it was prepared. It is prepared anew the next time.
func forgottenPlan(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "0A000" && e.Routine == "RevalidateCachedQuery" // messages are translated
}

// A rowError is a row that cannot be understood.
type rowError struct {
	column string
	err    error
}

func (e *rowError) Error() string { return fmt.Sprintf("column %q: %v", e.column, e.err) }
func (e *rowError) Unwrap() error { return e.err }

// settingsRefused reports whether the session's settings were refused, which
// ends a connection before its first statement.
func settingsRefused(err error) bool {
	return sqlState(err, "42704") || sqlState(err, "08P01")
}

// sqlState reports whether the server answered with a code.
func sqlState(err error, code string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == code
}

// notOfType reports whether a text of a key is none of its column's type: it
// cannot be read, is out of range or has a character that no text has.
func notOfType(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains([]string{"22P02", "22003", "22007", "22008", "22021"}, e.Code)
}
