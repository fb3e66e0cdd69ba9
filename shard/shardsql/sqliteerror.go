package shardsql

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tallystick/tallystick/shard"
)

var sqliteNoShardTable = regexp.MustCompile(`no such table: \S+_\d\d\b`)

// sqliteErrors reads the errors of SQLite.
type sqliteErrors struct{}

func (sqliteErrors) tell(err error) (told error, over bool) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return unavailable(err), true
	}
	answer, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err, false
	}
	meaning := sqliteMeaning(answer)
	if meaning == nil {
		return err, false
	}
	return fmt.Errorf("%w: %w", meaning, err), meaning == shard.ErrBusy || meaning == shard.ErrUnavailable
}

// sqliteMeaning returns what an error means here, or nil if it is the statement's
// own mistake.
func sqliteMeaning(err *sqlite.Error) error {
	switch err.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return shard.ErrDuplicate
	}
	switch err.Code() & 0xff { // the primary code
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return shard.ErrBusy
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT,
		sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PROTOCOL:
		return shard.ErrUnavailable
	case sqlite3.SQLITE_ERROR:
		if sqliteNoShardTable.MatchString(err.Error()) {
			return shard.ErrMoved
		}
	}
	return nil
}

// refused: statements are never sent together.
func (sqliteErrors) refused(error) bool { return false }

// tellCommit: where the disk was full the commit record was not written. After
// other errors of the disk it may be there, and be found when the file is opened
// again.
func (e sqliteErrors) tellCommit(err error) error {
	if answer, ok := errors.AsType[*sqlite.Error](err); ok {
		switch answer.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_NOMEM:
			told, _ := e.tell(err)
			return told
		}
	}
	return fmt.Errorf("%w: %w", shard.ErrUnknown, err)
}
