// Package seqdynamo keeps sequences in a DynamoDB table: a [sequence.Store]
// that any number of servers share.
//
// # Model
//
// The table's key is "name", a string. Each sequence is one item with one
// attribute for each field, so that the console shows what the counter is.
// One more item, whose name no sequence can have, counts the generation and
// records which table this is. A block is taken by one UpdateItem that adds
// to the counter where epoch, version, state and bounds allow it; everything
// else is a PutItem conditional on the nonce of the write before it. Both are
// one request.
//
// # Guarantees
//
// Reads are consistent. Writes are tried once: the SDK's own retries are off,
// because a repeated write whose first reply was lost fails its condition and
// would look like somebody else's. Where an intermediary repeats one all the
// same, the nonce of the item that comes back tells the caller. Reads may be
// tried three times. Every request has a time-out of its own.
//
// A table restored from a backup, or one dropped and made again, has another
// TableId than the one recorded in it. It is refused, because counters may
// have moved back, until `tallystick seq adopt --skip N`. So is a global table
// with eventual consistency, where the last writer wins and counters are not
// safe.
//
// # Failure
//
// Throttling, and whatever happened before a request was sent, is
// [sequence.ErrUnavailable]: nothing was written. A write that was sent and
// not answered, or answered with a server error, is
// [sequence.ErrUnknownOutcome].
//
//	store, err := seqdynamo.Open(ctx, seqdynamo.Options{Region: "eu-central-1", Table: "sequences"})
//
// The table needs the rights DescribeTable, GetItem, PutItem, UpdateItem and
// Scan; CreateTable too where [Options.Create] is set.
package seqdynamo
