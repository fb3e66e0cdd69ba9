// Package shard says which database a row lives in and lets nothing be written
// anywhere else.
//
// There are 32 logical shards for ever. A [Key] names its [Bucket], one of
// 1,024, and bucket mod 32 is its shard; for an [ID] that is id mod 32, so that
// anybody can tell the shard of an id by eye and in SQL. A [Map], which is a
// table and never arithmetic, says in which physical database each shard is. To
// grow, shards move to more databases; no id and no row changes.
//
// A [Cluster] is the map with its databases. Code gets at a shard only by a key
// ([Cluster.Write], [Cluster.Read]) or by a named and bounded [Cluster.FanOut],
// and runs only a [Statement], whose tables carry the number of the shard:
//
//	var redeem = shard.SQL("UPDATE coupon_# SET status = 2 WHERE id = ? AND status = 1")
//
//	err := cluster.Write(ctx, id, func(tx *shard.Tx) error {
//		n, err := tx.Exec(redeem, id)
//		...
//	})
//
// What types cannot see, the driver refuses: package shardsql wraps it so that a
// statement that names a shard's table without having come this way is
// [ErrUnrouted].
//
// # The fence
//
// Every write transaction begins by locking the shard's row in shard_fence,
// shared, and comparing its epoch with the map's. A mover changes that row
// first, which waits for the transactions that hold it, so a process that read
// the map, was paused and woke up later cannot write to where the shard was: it
// gets [ErrMoved], and the cluster reads the map again and follows the shard, or
// waits for it while it moves. A statement that creates or alters a table ends
// the fence in MariaDB and MySQL, so none runs while a shard moves. The same
// statement that locks reads the database's clock, the only one that decides ([Tx.Now]).
//
// # What happens if the process dies
//
// Before COMMIT is sent: nothing was written. After: the transaction is there or
// not, as the database decided. A caller that lives but lost the reply gets
// [ErrUnknown] and asks again with its business number.
package shard
