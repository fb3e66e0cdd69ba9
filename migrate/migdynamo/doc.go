// Package migdynamo writes rows to a DynamoDB table and reads back what is
// there: a [migrate.Sink].
//
// # Items
//
// A row becomes one item: each field an attribute under its own name. Null is
// NULL, Bool BOOL, Number N with its digits, Text S, Bytes B, List L; JSON is S,
// letter by letter, or a tree of M and L where the field says so. Nothing goes
// through floating point. What DynamoDB cannot hold exactly is refused with the
// reason, before anything is sent: over 400 KB, numbers of more than 38 digits
// or beyond 9.99E+125, NaN, keys that are empty, too long or of another type,
// and in a tree a name that comes twice or half a surrogate pair.
//
// In guarded mode the attribute [AttrVersion] holds the row's version. Where
// the attributes of the row do not tell its key in the source, [AttrKey] does.
// A tombstone is {the key, [AttrVersion], [AttrDeleted]: true}. The
// double-writer has to write its items likewise; best by this very Sink.
//
// # Writes
//
// Guarded writes are one PutItem each, on condition that the item is absent or
// has a smaller version; the item that a put lost against tells why it did.
// Where the table's key does not determine the source's, the condition also
// wants the same source key, so that two rows never take turns in one item.
// Absent is a PutItem where there is nothing. Overwrite is BatchWriteItem;
// what is left unprocessed is sent again, and a batch that is refused is cut
// in halves down to the row. Rows of one partition lie apart in the order of
// writing.
//
// # Failure
//
// The SDK's retries, and the token bucket that all its callers share, are off:
// each request has retries of its own, with full jitter between the delays of
// the plan, and goes on longer while DynamoDB throttles. What is left then
// matches [migrate.ErrTransient], and its rows are Unknown. A guarded put may be
// repeated after its reply was lost: the second one finds the version of the
// first. Each attempt has its own time-out, and none is sent after the context
// has ended: that is looked at last, when the request is signed and has its
// connection.
//
// # Rights
//
// DescribeTable, GetItem, BatchGetItem, PutItem, BatchWriteItem, Scan and, for
// the clean-up, DeleteItem; CreateTable where the plan says create.
package migdynamo
