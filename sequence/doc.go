// Package sequence hands out unique, rising 64-bit numbers to many processes
// at once, without a database round trip for each: a distributed replacement
// of database sequences.
//
// # Model
//
// A [Store] is the source of truth: one [Record] per sequence, whose counter
// one write moves by a whole [Block]. A [Service] caches blocks and grants
// parts of them as leases. A [Client] inside the application caches leases
// and answers [Client.Next] from memory; it refills ahead of need. Blocks of
// different servers are disjoint, and so are the leases of one server, so no
// value is granted twice, whoever crashes, hangs or comes back.
//
// # Guarantees
//
// Within one epoch of a sequence no two callers get the same value. On one
// client, a Next that begins after another returned gets a later value. Over
// all clients values rise with time but interleave. Values are missing only
// for known causes: a crash, a lost reply, a write of unknown outcome, an alter,
// left-overs, a refused return. All but the first two are counted.
//
// # Failure
//
// While the store is away a server serves what it has cached. While the
// server is away a client serves what it has cached; then Next waits until
// its context ends, and says why. The package's errors are of type [Error]
// and match the sentinels under errors.Is.
//
//	client := sequence.NewClient(service, sequence.ClientOptions{})
//	defer client.Close(context.Background())
//	id, err := client.Next(ctx, "orders_seq")
package sequence
