// Package seqtest has what tests of sequences need: a store in memory
// ([Memory]), a wrapper that spoils any store's calls on purpose ([Faulty]),
// and the conformance suite that every store passes ([TestStore]).
//
//	store := seqtest.NewFaulty(seqtest.NewMemory())
//	store.Plan(seqtest.Once(seqtest.OpAdvance, seqtest.LostReply))
//	service := sequence.NewService(store, sequence.ServiceOptions{})
//
// All of it waits on timers and contexts only, never on I/O, so that it works
// under testing/synctest.
package seqtest
