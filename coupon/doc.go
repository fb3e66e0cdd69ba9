// Package coupon issues coupons, lets users claim them and redeems each exactly
// once, on the 32 shards of package shard keyed by the coupon's id.
//
// A [Campaign] has a number of coupons, which are generated ahead and are its
// stock: no counter is counted down. A user claims one: it is bound to the user
// and lies in the user's wallet. An order redeems it, at once or after having
// reserved it; a void gives it back. An order may also be issued thousands at
// once, without users: bearer coupons, which whoever has the code may redeem or
// bind to a user.
//
// # What is decided, and where
//
// Each decision about a coupon is a pure function of the coupon, the request and
// the database's clock (decide.go). The flow around it reads the coupon, decides,
// and writes on condition that the version is still the one it read; whoever
// loses decides again. Coupon, ledger, event and, where it is on the same shard,
// wallet are written in one transaction.
//
// # Guarantees
//
//   - A coupon is redeemed by one order at a time. Of any number of attempts one
//     wins; the winner's repetition gets the first result again.
//   - Coupons claimed, issued and left make up the total, always.
//   - A business number (request, batch, order) is answered with the first result
//     for ever, or refused with [ErrMismatch] if it comes with other fields.
//   - Whoever is not the owner of a coupon cannot tell whether it exists.
//
// # Events
//
// Each change leaves a [Message] in the outbox of its shard, in its transaction. A
// [Relay] publishes what the outboxes hold; readers of the queue, like the
// [Projector] that brings wallets and orders of other shards up to date, have every
// message at least once and in any order, and go by the coupon's version.
//
// # What happens if the process dies
//
// Within a transaction: nothing was written. Between the transactions of a flow
// that needs several, its first one left a PENDING row, which a sweeper drives on
// after a minute: see [Service.Claim], [Service.Bind] and [Service.Issue].
package coupon
