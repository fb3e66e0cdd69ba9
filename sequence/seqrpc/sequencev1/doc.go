// Package sequencev1 is generated from
// proto/tallystick/sequence/v1/sequence.proto: the messages of
// tallystick.sequence.v1 and the client and server stubs of SequenceService.
// Applications use package seqrpc, which hides it behind the domain's types;
// other languages generate theirs from the same file.
package sequencev1
