package seqbolt

import (
	"fmt"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"
)

// A census says what all records are together: how many, and the sum of the
// checksums of their names and lines. Every write keeps it. It tells when a
// record is missing, is an older one of itself or has another's name, which no
// line can tell alone.
type census struct {
	records uint64
	sum     uint64
}

// count returns c with a record more; a nil line is none.
func (c census) count(name, line []byte) census {
	if line == nil {
		return c
	}
	sum := crc32.Update(crc32.Checksum(name, castagnoli), castagnoli, line)
	return census{c.records + 1, c.sum + uint64(sum)}
}

// minus returns c without the records of d.
func (c census) minus(d census) census { return census{c.records - d.records, c.sum - d.sum} }

func (c census) String() string { return fmt.Sprintf("%d %016x", c.records, c.sum) }

// readCensus returns the census that the file holds.
func readCensus(meta *bolt.Bucket) (census, error) {
	var c census
	text := string(meta.Get(keyCensus))
	if _, err := fmt.Sscanf(text, "%d %x", &c.records, &c.sum); err != nil || c.String() != text {
		return census{}, damaged(fmt.Errorf("the census is %.40q", text))
	}
	return c, nil
}
