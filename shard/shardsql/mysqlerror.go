package shardsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/tallystick/tallystick/shard"
)

// mysqlErrors reads the errors of MySQL and MariaDB.
type mysqlErrors struct{}

// What the servers' error numbers mean here. A number that is not listed is the
// statement's own mistake.
var mysqlMeaning = map[uint16]error{
	1062: shard.ErrDuplicate, // duplicate entry
	1586: shard.ErrDuplicate, // the same, with the key's name

	1205: shard.ErrBusy, // lock wait timeout, and NOWAIT on MariaDB
	1213: shard.ErrBusy, // deadlock
	3572: shard.ErrBusy, // NOWAIT on MySQL
	1412: shard.ErrBusy, // the table's definition changed under the transaction

	1040: shard.ErrUnavailable, // too many connections
	1041: shard.ErrUnavailable, // out of memory
	1053: shard.ErrUnavailable, // shutting down
	1077: shard.ErrUnavailable, // shut down
	1203: shard.ErrUnavailable, // too many connections of the user
	1290: shard.ErrUnavailable, // read-only
	1792: shard.ErrUnavailable, // a read-only transaction
	1836: shard.ErrUnavailable, // read-only
	1317: shard.ErrUnavailable, // killed query
	1927: shard.ErrUnavailable, // killed connection
	1969: shard.ErrUnavailable, // max_statement_time on MariaDB
	1021: shard.ErrUnavailable, // disk full
	1114: shard.ErrUnavailable, // table or tablespace full
	4031: shard.ErrUnavailable, // idle for too long
}

const (
	noSuchTable = 1146
	deadlock    = 1213
	outOfRange  = 1690
)

// mysqlShardTable finds a shard's table, which stands behind its database's name,
// in a server's words. Those may be translated, names are not.
var mysqlShardTable = regexp.MustCompile(`\.\w+_\d\d\b`)

func (mysqlErrors) tell(err error) (told error, over bool) {
	if answer, ok := errors.AsType[*mysql.MySQLError](err); ok {
		meaning := mysqlMeaning[answer.Number]
		switch {
		case answer.Number == noSuchTable && mysqlShardTable.MatchString(answer.Message):
			meaning = shard.ErrMoved
		case answer.Number == outOfRange && strings.Contains(answer.Message, "row_count()"): // of [matched]
			meaning = shard.ErrNoMatch
		}
		if meaning == nil {
			return err, false
		}
		return fmt.Errorf("%w: %w", meaning, err), meaning == shard.ErrBusy || meaning == shard.ErrUnavailable
	}
	if isLost(err) {
		return unavailable(err), true
	}
	return err, false
}

// tellCommit: a deadlock (with other nodes of a cluster) and a connection that was
// found lost before COMMIT was sent say that nothing was committed. Other answers
// do not: a server that shuts down may give one to what it has committed.
func (e mysqlErrors) tellCommit(err error) error {
	if told, _ := e.tell(err); errors.Is(told, shard.ErrBusy) || err == driver.ErrBadConn {
		return told
	}
	return fmt.Errorf("%w: %w", shard.ErrUnknown, err)
}

// refused: a value that does not fit, a key that is there, a table or a column that
// is not. No COMMIT is answered so, because no check waits for it.
func (mysqlErrors) refused(err error) bool {
	answer, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return false
	}
	switch string(answer.SQLState[:2]) {
	case "22", "23", "42":
		return true
	}
	return false
}

// isLost reports whether the connection, and not the statement, is to blame.
func isLost(err error) bool {
	for _, lost := range []error{
		driver.ErrBadConn, mysql.ErrInvalidConn, mysql.ErrMalformPkt, mysql.ErrPktSync, mysql.ErrBusyBuffer,
		context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	_, network := errors.AsType[net.Error](err)
	return network
}

func isDeadlock(err error) bool {
	answer, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && answer.Number == deadlock
}
