// Package couponsql keeps coupons in SQL: [Store] on the shards of a
// [shard.Cluster], [Control] in the database beside them. Both speak to MariaDB
// (or MySQL) and to SQLite, as the databases they are given do; package
// coupontest has the suite that both pass on both.
//
// Each shard has tables of its own, whose names end in its number, so that any
// shard may live in any database. The schema's files say what is in them, [Open]
// brings them up to date.
//
// # Where dialects differ
//
// dialect.go has all of it: locks, the upsert of newer rows, lists as one
// argument, the clock. Everything else is one text.
//
// # What happens if the process dies
//
// Within a transaction: nothing was written. Within an upgrade: the step it was at
// runs again, since each statement of a step may be repeated.
package couponsql
