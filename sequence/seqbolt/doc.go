// Package seqbolt keeps sequences in one local file: a [sequence.Store] for a
// single machine, durable without any server.
//
// # Model
//
// The file is a bbolt database. Its bucket "sequences" holds a line of JSON
// for each name, after a checksum; its bucket "tallystick" says which format
// that is, gives the file an identity and counts the generation. Everything
// can be read with bbolt's own command:
//
//	bbolt get sequence.db sequences orders_seq
//	1c291ca3 {"name":"orders_seq","next":"1001",...}
//
// JSON, because the person on call must be able to see what the counter is;
// 64-bit numbers as strings, because every tool reads them exactly then; a
// checksum, because bbolt has none for its data and a wrong digit in a counter
// would hand out values twice.
//
// # Guarantees
//
// A write that returns nil has been fsynced. Writes that arrive while another
// is being fsynced share the next one, so many writers at once cost few
// fsyncs and a lone one never waits. One process holds the file at a time.
//
// # Failure
//
// A process killed at any point leaves a file that opens with every write that
// had returned. After a failed write or fsync nobody knows what the disk
// holds: the store answers [sequence.ErrUnavailable] to everything until it is
// opened again. A file that is damaged, cut short, of another format or not
// ours is refused by [Open] and left as it is. A file restored from a backup
// looks like any other: move its counters with `tallystick seq adopt --skip N`
// before anybody uses it.
//
//	store, err := seqbolt.Open("sequence.db", seqbolt.Options{})
//	defer store.Close()
package seqbolt
