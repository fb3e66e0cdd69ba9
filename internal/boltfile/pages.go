package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"
)

// What bbolt writes, in the byte order of the machine.
//
//	page     id u64, flags u16, count u16, overflow u32, then by its flags:
//	meta     magic, version, page size, flags u32; root, sequence, free list,
//	         end, transaction u64; FNV-1a of these
//	branch   count x (position, key length u32, page u64), then the keys
//	leaf     count x (flags, position, key length, value length u32), then
//	         keys and values; a position counts from its own element
//	bucket   a value: root page u64, or 0 and the page itself; sequence u64
const (
	headSize    = 16 // of a page; of an element, too
	metaSize    = 64
	bucketSize  = 16
	branchPage  = 1
	leafPage    = 2
	metaPage    = 4
	freePage    = 16
	leafBucket  = 1          // flag of a leaf's element whose value is a bucket
	noFreeList  = 1<<64 - 1  // page of a free list that is not stored
	boltMagic   = 0xED0CDAED // of a meta page
	boltVersion = 2
)

var order = binary.NativeEndian

// checkPages follows every link of a bbolt file and returns an error unless
// each page below the end is used once, or free, and all lies inside its page
// and in order. bbolt trusts all that: on a damaged file it may loop for ever,
// fault, miss keys, or write over a page in use.
func checkPages(file io.ReaderAt, size int64, pageSize int) error {
	newest, err := newestMeta(file, pageSize)
	if err != nil {
		return Damaged(err)
	}
	if uint64(size)/uint64(pageSize) < newest.end {
		return Damaged(fmt.Errorf("it has %d bytes and must have %d", size, newest.end*uint64(pageSize)))
	}
	w := walk{file: file, pageSize: uint64(pageSize), used: make([]bool, newest.end)}
	if err := w.all(newest); err != nil {
		return Damaged(err)
	}
	return nil
}

// A walk visits the pages of a file, each at most once, so that it ends.
type walk struct {
	file     io.ReaderAt
	pageSize uint64
	used     []bool // by page, below the end
}

func (w *walk) all(m meta) error {
	w.used[0], w.used[1] = true, true
	free, err := w.freeList(m.freeList)
	if err != nil {
		return err
	}
	if err := w.tree(m.root, nil, nil); err != nil {
		return err
	}
	for _, id := range free {
		if err := w.use(id, 1); err != nil {
			return err
		}
	}
	for id, used := range w.used {
		if !used && m.freeList != noFreeList {
			return fmt.Errorf("page %d is neither used nor free", id)
		}
	}
	return nil
}

// use marks n pages from id on.
func (w *walk) use(id, n uint64) error {
	if end := uint64(len(w.used)); id >= end || n > end-id {
		return fmt.Errorf("page %d lies beyond the end", id)
	}
	for at := id; at < id+n; at++ {
		if w.used[at] {
			return fmt.Errorf("page %d is used twice", at)
		}
		w.used[at] = true
	}
	return nil
}

// page reads and marks a page with what overflows it.
func (w *walk) page(id uint64) (pageContent, error) {
	if err := w.use(id, 1); err != nil {
		return nil, err
	}
	p := make(pageContent, w.pageSize)
	if _, err := w.file.ReadAt(p, int64(id*w.pageSize)); err != nil {
		return nil, err
	}
	if own := order.Uint64(p); own != id {
		return nil, fmt.Errorf("page %d says it is page %d", id, own)
	}
	more := uint64(order.Uint32(p[12:]))
	if more == 0 {
		return p, nil
	}
	if err := w.use(id+1, more); err != nil {
		return nil, err
	}
	p = make(pageContent, (1+more)*w.pageSize)
	_, err := w.file.ReadAt(p, int64(id*w.pageSize))
	return p, err
}

// freeList returns the pages that are free.
func (w *walk) freeList(id uint64) ([]uint64, error) {
	if id == noFreeList {
		return nil, nil
	}
	p, err := w.page(id)
	if err != nil {
		return nil, err
	}
	count, list := uint64(p.count()), p[headSize:]
	if count == 0xFFFF { // does not fit the head
		count, list = order.Uint64(list), list[8:]
	}
	if p.flags() != freePage || count > uint64(len(list))/8 {
		return nil, fmt.Errorf("page %d is not a free list", id)
	}
	free := make([]uint64, count)
	for n := range free {
		free[n] = order.Uint64(list[8*n:])
	}
	return free, nil
}

// tree checks the pages from id downwards: the keys, in order, lie within low
// and before high; nil is no bound.
func (w *walk) tree(id uint64, low, high []byte) error {
	p, err := w.page(id)
	if err != nil {
		return err
	}
	switch {
	case p.flags() == leafPage:
		err = w.leaf(p, low, high)
	case p.flags() == branchPage && p.count() > 0:
		err = w.branch(p, low, high)
	default:
		err = fmt.Errorf("flags %x, %d elements", p.flags(), p.count())
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

func (w *walk) branch(p pageContent, low, high []byte) error {
	keys, pages := make([][]byte, p.count()), make([]uint64, p.count())
	for n := range keys {
		e, err := p.element(n)
		if err != nil {
			return err
		}
		if keys[n], _, err = e.split(p, order.Uint32(e.head), order.Uint32(e.head[4:]), 0); err != nil {
			return err
		}
		pages[n] = order.Uint64(e.head[8:])
	}
	if err := inOrder(keys, low, high); err != nil {
		return err
	}
	for n := range keys {
		next := high
		if n+1 < len(keys) {
			next = keys[n+1]
		}
		if err := w.tree(pages[n], keys[n], next); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) leaf(p pageContent, low, high []byte) error {
	keys := make([][]byte, p.count())
	for n := range keys {
		e, err := p.element(n)
		if err != nil {
			return err
		}
		var value []byte
		if keys[n], value, err = e.split(p, order.Uint32(e.head[4:]), order.Uint32(e.head[8:]), order.Uint32(e.head[12:])); err != nil {
			return err
		}
		switch flags := order.Uint32(e.head); flags {
		case 0:
		case leafBucket:
			err = w.bucket(value)
		default:
			err = fmt.Errorf("element %d has flags %x", n, flags)
		}
		if err != nil {
			return err
		}
	}
	return inOrder(keys, low, high)
}

// bucket checks the pages of a bucket, or the one that is its value.
func (w *walk) bucket(value []byte) error {
	if len(value) < bucketSize {
		return errors.New("a bucket is cut short")
	}
	if root := order.Uint64(value); root != 0 {
		return w.tree(root, nil, nil)
	}
	p := pageContent(value[bucketSize:])
	if len(p) < headSize || p.flags() != leafPage {
		return errors.New("a bucket is not a leaf")
	}
	return w.leaf(p, nil, nil)
}

// inOrder returns an error unless keys rise from low on and end before high,
// and have the length that bbolt lets them have.
func inOrder(keys [][]byte, low, high []byte) error {
	for n, key := range keys {
		if n == 0 && bytes.Compare(key, low) < 0 || n > 0 && bytes.Compare(key, keys[n-1]) <= 0 ||
			high != nil && bytes.Compare(key, high) >= 0 || len(key) == 0 || len(key) > bolt.MaxKeySize {
			return fmt.Errorf("key %d is out of order", n)
		}
	}
	return nil
}
