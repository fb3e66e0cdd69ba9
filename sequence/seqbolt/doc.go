// Package seqbolt keeps sequences in one local file: a [sequence.Store] for a
// single machine, durable without any server.
//
// # Model
//
// The file is a bbolt database. Its bucket "sequences" holds a line of JSON
// for each name, after a checksum; its bucket "tallystick" says which format
// that is, gives the file an identity, counts the generation and holds a census
// of all lines. Everything can be read with bbolt's own command:
//
//	bbolt get sequence.db sequences orders_seq
//	1c291ca3 {"name":"orders_seq","next":"1001",...}
//
// JSON, because the person on call must be able to see what the counter is;
// 64-bit numbers as strings, because every tool reads them exactly then; a
// checksum, because bbolt has none for its data and a wrong digit in a counter
// would hand out values twice; the census, because a line that is missing or is
// an older one of itself would, too.
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
// ours is refused by [Open] and left as it is: Open follows every link and
// reads every line first, about 4 ms for 1,000 sequences. So is a file of
// which one of the two meta pages is wrong: bbolt would go back to the other,
// which is one write behind.
//
// A file that as a whole is an older one looks like any other: restored from a
// backup, or left by a disk that lost what it had confirmed. Move its counters
// with `tallystick seq adopt --skip N` before anybody uses it.
//
//	store, err := seqbolt.Open("sequence.db", seqbolt.Options{})
//	defer store.Close()
package seqbolt
