// Package board has the rules of a [migrate.State] over any store of keys and
// values that has transactions ([Store]): who may claim which slot, what a
// claim may write, how finished slots add up, how the status moves. The state
// in memory and the one in a file are this package over their stores. The one
// in Redis has the same rules in Lua; the suite in migtest holds the two
// against each other.
//
// # Keys
//
//	header          run, epoch, status, keeper, totals, finished spans, verdict
//	plan            the plan as the first pod wrote it
//	open/PASS/SLOT  a slot that was claimed and is not finished, or a piece of
//	                one that was split: its progress and who holds it
//	ended/EPOCH     which claim ended last and how, so that Finish can be repeated
//	ledger/NUMBER   a line for each finished slot
//	quarantine/KEY  a row that cannot be stored
//	mark            how far the verification under way has come, and whose it is
//
// Values are JSON. There is one open key for each slot that is worked on, was
// abandoned or is split: the finished ones are spans in the header.
package board
