// Package coupontest has the suites that the databases of coupons pass:
// [TestStore] for the shards, [TestControl] and [TestWorkers] for the database
// beside them; and [Workers], which keeps leases in memory.
package coupontest
