package boltfile

import (
	"errors"
	"fmt"
)

// A pageContent is a page, at least its head.
type pageContent []byte

func (p pageContent) flags() int { return int(order.Uint16(p[8:])) }

func (p pageContent) count() int { return int(order.Uint16(p[10:])) }

// An element of a branch or leaf.
type element struct {
	at   uint64 // in its page
	head []byte
}

func (p pageContent) element(n int) (element, error) {
	at := headSize + headSize*n
	if at+headSize > len(p) {
		return element{}, fmt.Errorf("element %d lies beyond the page", n)
	}
	return element{uint64(at), p[at : at+headSize]}, nil
}

// split returns the key and the value behind an element.
func (e element) split(p pageContent, position, keyLen, valueLen uint32) (key, value []byte, err error) {
	from := e.at + uint64(position)
	mid := from + uint64(keyLen)
	to := mid + uint64(valueLen)
	if to > uint64(len(p)) {
		return nil, nil, errors.New("a key or value lies beyond the page")
	}
	return p[from:mid], p[mid:to], nil
}
