// Package boltfile opens bbolt files that may be anything.
//
// bbolt trusts the file it is given: of one that is damaged or not its own it
// may lay out a new one over it, loop for ever, fault, miss keys, or write over
// a page in use. [Kind.Open] follows every link of the file first, without
// writing and with its own code, and refuses what is not whole; it makes a new
// file wholly or not at all.
package boltfile
