package boltfile

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// A meta is where one transaction begins.
type meta struct {
	root, freeList, end, transaction uint64 // end: no page from there on is in use
}

// newestMeta returns the later of the two metas, which two transactions in
// turn wrote. bbolt goes back to the one before if one of them is damaged: that
// would hand values out twice.
func newestMeta(file io.ReaderAt, pageSize int) (meta, error) {
	var metas [2]meta
	for n := range metas {
		b := make([]byte, headSize+metaSize)
		if _, err := file.ReadAt(b, int64(n*pageSize)); err != nil {
			return meta{}, err
		}
		m, ok := parseMeta(b, n, pageSize)
		if !ok {
			return meta{}, fmt.Errorf("meta page %d is wrong", n)
		}
		metas[n] = m
	}
	switch a, b := metas[0], metas[1]; {
	case a.transaction == b.transaction+1:
		return a, nil
	case b.transaction == a.transaction+1:
		return b, nil
	}
	return meta{}, errors.New("its two meta pages do not belong together")
}

func parseMeta(b []byte, n, pageSize int) (meta, bool) {
	head, b := b[:headSize], b[headSize:]
	sum := fnv.New64a()
	sum.Write(b[:metaSize-8])
	m := meta{root: order.Uint64(b[16:]), freeList: order.Uint64(b[32:]), end: order.Uint64(b[40:]), transaction: order.Uint64(b[48:])}
	return m, order.Uint64(head) == uint64(n) && order.Uint16(head[8:]) == metaPage &&
		order.Uint32(b) == boltMagic && order.Uint32(b[4:]) == boltVersion && int64(order.Uint32(b[8:])) == int64(pageSize) &&
		order.Uint64(b[metaSize-8:]) == sum.Sum64() && m.transaction%2 == uint64(n) && m.end >= 2
}
