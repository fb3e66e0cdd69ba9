// Package couponnats is the queue of coupon events, on NATS JetStream: in this
// process, which is the default, or on a cluster elsewhere. A [Queue] is where a
// [coupon.Relay] publishes and what readers, like a [coupon.Projector], read.
//
//	queue, err := couponnats.Open(ctx, couponnats.Options{Dir: "data/events", Readers: []string{"wallet"}})
//	...
//	go relay.Run(ctx)                                   // publishes
//	go queue.Read(ctx, "wallet", projector.Apply)       // applies
//	...
//	queue.Close()                                       // after both have returned
//
// # What is kept
//
// A message is kept until every reader has handled it, and never dropped before:
// a full queue refuses new ones, which then wait in the outbox of their shard. A
// reader has a message again after a pause until it has handled it; what it can
// never handle is set aside, on the subject of its dead letters, and counted. The
// server in this process acknowledges a message when it is on the disk. Where its
// disk was full it takes nothing for ever after; it is then started again, every 30
// s until there is room.
//
// # What happens if the process dies
//
// After a message was published and before its row was removed: it is published
// again. The queue drops it if it had it within the last two minutes; otherwise
// readers have it twice, which they know by its version. While a reader handles
// it: it comes again after a minute. After it was written to the dead letters and
// before that was acknowledged: it is there once or twice, with one name.
package couponnats
