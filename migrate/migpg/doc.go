// Package migpg reads a table of PostgreSQL, 13 or later, as the source of a
// migration.
//
//	source, err := migpg.Open(ctx, plan)
//
// A [Source] is a [migrate.Source], [migrate.Settler], [migrate.Outbox],
// [migrate.Gauge] and [migrate.Preflighter].
//
// # Reading
//
// Pages follow an index and nothing else: the session forbids sorts, bitmaps
// and full scans as far as PostgreSQL lets itself be forbidden, and
// [Source.Preflight] refuses a table where one remains. Keys are compared in
// the database, in the collation of the column. There is no transaction beyond
// one statement. Sessions are read-only, in UTC, end a statement after a
// minute, and refuse to read through row-level security, which would hide rows.
// They need a connection to the server itself or a pooler that gives a session
// of its own: startup parameters are set, and [Open] refuses a connection on
// which they are not in force.
//
// Read are the columns that the plan lists, those of the source's key, of the
// version and those named like the sink's key; all where the plan lists none.
//
// # Types
//
// A value is what PostgreSQL prints, so that nothing passes through a
// floating-point number:
//
//	bool                                   Bool, "true" or "false"
//	smallint integer bigint oid            Number
//	numeric                                Number with all digits: 1.50 stays 1.50; NaN, Infinity, -Infinity
//	real, double precision                 Number, the shortest that reads back as the same
//	text varchar citext name xml, enums    Text
//	char(n)                                Text, padded with spaces to n
//	uuid inet cidr macaddr bit             Text
//	json                                   JSON, character by character as it was stored
//	jsonb                                  JSON as PostgreSQL prints it; numbers keep their digits
//	bytea                                  Bytes
//	timestamptz                            Text in RFC 3339, in UTC, with up to 6 digits of a second
//	timestamp                              the same without the final Z
//	date time timetz                       Text: 2024-10-20, 02:59:00.5, 02:59:00.5+02
//	interval                               Text in ISO 8601: P1Y2M3DT4H5M6.5S
//	arrays of these                        List, nested by dimension; lower bounds other than 1 are lost
//	domains                                as the type they are made of
//
// Instants that RFC 3339 has no word for are "infinity" and "-infinity", have
// more than four digits of a year, or end in " BC". Each is read back by
// PostgreSQL as what it was. An empty text is not null, nor is an empty array.
//
// Anything else (ranges, composites, geometry, money, hstore, text search) is
// refused: leave the column out of the plan, or give the table a generated
// column of a type that is here.
//
// # Keys
//
// A key column is an integer, numeric, text, varchar, char(n), uuid,
// timestamptz, timestamp or date. The first is a text for ULIDs, a uuid or text
// for UUIDv7, a timestamptz or an integer, as slots.by says. The version is an
// integer, taken as it is, or a timestamp, in microseconds since 1970.
//
// # Failure
//
// What may pass by itself matches [migrate.ErrTransient]: lost connections, a
// server that starts or stops, time-outs, locks, too many connections. What SQL
// refuses does not. No error holds the DSN.
package migpg
