package coupon

import "time"

// The points between two steps of a flow, where a process may die. Options.Step
// is told when one is reached. What is there then, and who goes on, is in the
// tables of docs/coupon.md.
const (
	// Of what is one transaction: redeem, reserve, release, void.
	StepChangeWritten   = "change.written"   // within it: all is decided, nothing committed
	StepChangeCommitted = "change.committed" // the caller has no answer yet

	StepClaimLocal   = "claim.local"   // the one transaction is committed, the caller has no answer yet
	StepClaimPending = "claim.pending" // the user's shard has the claim, the coupon is free
	StepClaimBound   = "claim.bound"   // the coupon is the user's, the claim is pending
	StepClaimMoved   = "claim.moved"   // the claim has another coupon, which is free
	StepClaimDone    = "claim.done"    // the caller has no answer yet

	StepBindPending = "bind.pending" // the user's shard has the bind, the coupon is nobody's
	StepBindBound   = "bind.bound"   // the coupon is the user's, the bind is pending
	StepBindRefused = "bind.refused" // the coupon is not to be had, the bind is pending
	StepBindDone    = "bind.done"    // the caller has no answer yet

	StepIssueBatch   = "issue.batch"   // the batch is there, its order does not know it
	StepIssuePlaced  = "issue.placed"  // the order knows the batch, no chunk is there
	StepIssueChunk   = "issue.chunk"   // a chunk is there
	StepIssueWallet  = "issue.wallet"  // a shard's chunks are there, those of another shard's user not in the wallet
	StepIssueChunked = "issue.chunked" // all chunks are there, the batch is pending
	StepIssueDone    = "issue.done"    // the batch is done, the caller or the operation does not know

	StepGenerateChunk   = "generate.chunk"   // a chunk is there
	StepGenerateChunked = "generate.chunked" // all chunks are there, generation is open

	StepOperationLeased = "operation.leased" // nothing is done yet
	StepOperationWorked = "operation.worked" // all is done, the operation is not

	StepSweepFound = "sweep.found" // what is pending on a shard is read
)

// Steps returns all points.
func Steps() []string {
	return []string{
		StepChangeWritten, StepChangeCommitted,
		StepClaimLocal, StepClaimPending, StepClaimBound, StepClaimMoved, StepClaimDone,
		StepBindPending, StepBindBound, StepBindRefused, StepBindDone,
		StepIssueBatch, StepIssuePlaced, StepIssueChunk, StepIssueWallet, StepIssueChunked, StepIssueDone,
		StepGenerateChunk, StepGenerateChunked,
		StepOperationLeased, StepOperationWorked,
		StepSweepFound,
	}
}

// How long a process is left to what it began before others go on with it, and
// what follows from that.
const (
	defaultPatience = time.Minute
	sweepsPerWait   = 4 // turns of the sweeper in that time
	leasesPerWait   = 6 // an operation's lease is the sixth part
)
