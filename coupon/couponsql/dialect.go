package couponsql

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tallystick/tallystick/shard"
)

// A wording is one statement in the words of each dialect.
type wording struct{ mariadb, sqlite shard.Statement }

func (w wording) in(d shard.Dialect) shard.Statement {
	if d == shard.SQLite {
		return w.sqlite
	}
	return w.mariadb
}

// A list is rows with the columns id and code, given as one JSON argument:
// [[1,"A"],[2,"B"]]. That is as fast as marks for each row, and one text for any
// number of rows.
const (
	mariadbList = "JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', code VARCHAR(64) PATH '$[1]'))"
	sqliteList  = "(SELECT value ->> 0 AS id, value ->> 1 AS code FROM json_each(?))"
)

// worded makes a statement in which {list} stands for a list; {lock} for what
// keeps the rows of a SELECT locked; {by key} for the index to use, where the server
// may take another whose columns are asked for too; and {beyond a, b} for being
// greater than a pair of values, with three arguments: the first, the first again
// and the second.
//
// SQLite lets one transaction write at a time: there is nothing to lock. It seeks
// an index by a pair and not by the alternative; MariaDB is the other way round.
func worded(text string) wording {
	beyond, by := regexp.MustCompile(`{beyond (\w+), (\w+)}`), regexp.MustCompile(`{by (\w+)}`)
	return wording{
		mariadb: shard.SQL(strings.NewReplacer("{list}", mariadbList, "{lock}", "FOR UPDATE").
			Replace(by.ReplaceAllString(beyond.ReplaceAllString(text, "($1 > ? OR $1 = ? AND $2 > ?)"), "FORCE INDEX ($1)"))),
		sqlite: shard.SQL(strings.NewReplacer("{list}", sqliteList, "{lock}", "").
			Replace(by.ReplaceAllString(beyond.ReplaceAllString(text, "? IS NOT NULL AND ($1, $2) > (?, ?)"), ""))),
	}
}

// updatingListed makes an UPDATE of the rows of a table, named c, that have an id
// of a list. The arguments of set come before the list in SQLite only: see
// [listedArgs].
func updatingListed(table, set, where string) wording {
	return wording{
		mariadb: shard.SQL(fmt.Sprintf("UPDATE %s AS list JOIN %s AS c ON c.id = list.id SET %s WHERE %s", mariadbList, table, set, where)),
		sqlite:  shard.SQL(fmt.Sprintf("UPDATE %s AS c SET %s FROM %s AS list WHERE c.id = list.id AND %s", table, set, sqliteList, where)),
	}
}

// listedArgs returns the arguments of a statement that updatingListed made.
func listedArgs(d shard.Dialect, list string, set ...any) []any {
	if d == shard.SQLite {
		return append(set, list)
	}
	return append([]any{list}, set...)
}

// inserting makes a statement that adds a row.
func inserting(table string, columns []string) string {
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(columns, ", "), marks(len(columns)))
}

// upsertingNewer makes a statement that adds a row, or overwrites the one with
// the same key, the first columns, if that has a smaller version, the last one.
func upsertingNewer(table string, key int, columns ...string) wording {
	insert := inserting(table, columns)
	var mariadb, sqlite []string
	for _, c := range columns[key:] {
		// Assigned from left to right: the version is the old one until the end.
		mariadb = append(mariadb, fmt.Sprintf("%[1]s = IF(VALUES(version) > version, VALUES(%[1]s), %[1]s)", c))
		sqlite = append(sqlite, fmt.Sprintf("%[1]s = excluded.%[1]s", c))
	}
	return wording{
		mariadb: shard.SQL(insert + " ON DUPLICATE KEY UPDATE " + strings.Join(mariadb, ", ")),
		sqlite: shard.SQL(fmt.Sprintf("%s ON CONFLICT (%s) DO UPDATE SET %s WHERE excluded.version > %s.version",
			insert, strings.Join(columns[:key], ", "), strings.Join(sqlite, ", "), table)),
	}
}

// clock selects the database's time in ms since 1970.
func clock(d shard.Dialect) string {
	if d == shard.SQLite {
		return "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)"
	}
	return "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)"
}

// lock keeps the rows of a SELECT of the control database locked.
func lock(d shard.Dialect) string {
	if d == shard.SQLite {
		return ""
	}
	return " FOR UPDATE"
}

// marks returns n question marks with commas.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }
