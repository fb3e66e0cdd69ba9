// Package realtest starts the real servers that tests talk to: private ones,
// on free ports of the loopback interface, with their data in a temporary
// folder. Nothing of the machine but the installed programs is assumed, and a
// test may kill, stop and freeze any server it started.
//
//	db := realtest.Postgres(t)         // a server of this test's own
//	dsn := realtest.PostgresDSN(t)     // a new database on a server the package's tests share
//	store := realtest.Dynalite(t)      // DynamoDB's API, likewise
//	url := realtest.DynaliteURL(t)
//	cache := realtest.Redis(t)         // likewise
//	url, prefix := realtest.RedisPrefix(t)
//
// A program that is not installed fails the test with a line that says so; it
// never skips it. Whatever was started ends with the test, and at the latest
// with the test process, whether that returns, panics, runs into its time
// limit or is killed: a watchdog outside it sees the end of a pipe.
//
// Each kind of server is one file. They share [Process].
package realtest
