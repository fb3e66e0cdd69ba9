// Package shardsql is where shards live: [OpenMySQL] opens a database of a MySQL
// or MariaDB server, [OpenSQLite] a file. Both are a shard.Database, tell the
// same errors apart and pass the same suite, package shardtest.
//
// Every statement passes the guard: one that names a table with a two-digit
// suffix, like coupon_17, is shard.ErrUnrouted unless it came through a
// shard.Cluster for that very shard. See [OpenMySQL] and [OpenSQLite] for what
// each pins, and [EnsureFence] and [RaiseFence] for the table that keeps late
// writers out.
//
// # What an error leaves
//
// After ErrBusy, ErrUnavailable or a lost connection the transaction takes no
// more statements and is rolled back, even if the function returns nil: what it
// had written may be gone already, and a statement after that would be a
// transaction of its own, without the fence. After ErrDuplicate, or an error of
// the statement itself, it goes on.
package shardsql
