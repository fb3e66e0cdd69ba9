package seqbolt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/tallystick/tallystick/sequence"
)

// An item is a record as the file holds it. Fields may be added, never
// renamed: another meaning needs another format number.
type item struct {
	Name      string         `json:"name"`
	Next      int64          `json:"next,string"`
	Exhausted bool           `json:"exhausted"`
	State     sequence.State `json:"state"`
	Epoch     uint64         `json:"epoch,string"`
	Version   uint32         `json:"definition_version"`
	GiveBacks uint64         `json:"give_backs,string"`
	Nonce     string         `json:"last_write"`

	Start     int64 `json:"start,string"`
	Increment int64 `json:"increment,string"`
	Min       int64 `json:"min,string"`
	Max       int64 `json:"max,string"`
	Cycle     bool  `json:"cycle"`

	BlockSize      int64 `json:"block_size,string"`
	MaxBlock       int64 `json:"max_block,string"`
	ServerCacheMax int64 `json:"server_cache_max,string"`
	ClientCacheMin int64 `json:"client_cache_min,string"`
	ClientCacheMax int64 `json:"client_cache_max,string"`
	MinThreshold   int64 `json:"min_threshold,string"`
	BufferSeconds  int64 `json:"buffer_seconds,string"`

	Owner  string            `json:"owner,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

func itemOf(r sequence.Record) item {
	d := r.Definition
	return item{
		Name: d.Name, Next: r.Next, Exhausted: r.Exhausted, State: r.State, Epoch: r.Epoch, Version: r.Version, GiveBacks: r.GiveBacks, Nonce: r.Nonce,
		Start: d.Start, Increment: d.Increment, Min: d.Min, Max: d.Max, Cycle: d.Cycle,
		BlockSize: d.BlockSize, MaxBlock: d.MaxBlock, ServerCacheMax: d.ServerCacheMax,
		ClientCacheMin: d.ClientCacheMin, ClientCacheMax: d.ClientCacheMax, MinThreshold: d.MinThreshold, BufferSeconds: d.BufferSeconds,
		Owner: d.Owner, Labels: d.Labels,
	}
}

func (i item) record() sequence.Record {
	return sequence.Record{
		Definition: sequence.Definition{
			Name: i.Name, Start: i.Start, Increment: i.Increment, Min: i.Min, Max: i.Max, Cycle: i.Cycle,
			BlockSize: i.BlockSize, MaxBlock: i.MaxBlock, ServerCacheMax: i.ServerCacheMax,
			ClientCacheMin: i.ClientCacheMin, ClientCacheMax: i.ClientCacheMax, MinThreshold: i.MinThreshold, BufferSeconds: i.BufferSeconds,
			Owner: i.Owner, Labels: i.Labels,
		},
		Next: i.Next, Exhausted: i.Exhausted, State: i.State, Epoch: i.Epoch, Version: i.Version, GiveBacks: i.GiveBacks, Nonce: i.Nonce,
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumLen is the length of the checksum and the space after it.
const sumLen = 9

// encode returns a record's line: the CRC-32C of the JSON in hex, a space, the
// JSON.
func encode(r sequence.Record) ([]byte, error) {
	var line bytes.Buffer
	line.WriteString("00000000 ")
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // for the reader's sake
	if err := enc.Encode(itemOf(r)); err != nil {
		return nil, err
	}
	b := bytes.TrimSuffix(line.Bytes(), []byte("\n"))
	copy(b, checksum(b[sumLen:]))
	return b, nil
}

// decode returns the record of name from its line.
func decode(name string, line []byte) (sequence.Record, error) {
	if err := checkLine([]byte(name), line); err != nil {
		return sequence.Record{}, err
	}
	var i item
	if err := json.Unmarshal(line[sumLen:], &i); err != nil {
		return sequence.Record{}, damaged(fmt.Errorf("sequence %.60q: %w", name, err))
	}
	if i.Name != name {
		return sequence.Record{}, damaged(fmt.Errorf("sequence %.60q is stored as %.60q", i.Name, name))
	}
	return i.record(), nil
}

// checkLine returns an error unless a line has its checksum.
func checkLine(name, line []byte) error {
	if len(line) < sumLen || string(line[:sumLen-1]) != checksum(line[sumLen:]) {
		return damaged(fmt.Errorf("the checksum of sequence %.60q is wrong", name))
	}
	return nil
}

func checksum(b []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli))
}
