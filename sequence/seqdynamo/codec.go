package seqdynamo

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/sequence"
)

// The attributes that expressions use. The key is one of them.
const (
	attrName      = "name"
	attrNext      = "next"
	attrExhausted = "exhausted"
	attrEpoch     = "epoch"
	attrVersion   = "definition_version"
	attrState     = "state"
	attrNonce     = "last_write"
)

// An item is a record, or the meta item, as DynamoDB holds it. Its numbers
// have 38 digits, so every int64 and uint64 is exact.
type item = map[string]types.AttributeValue

// signed lists the int64 fields of a record with their attributes.
func signed(r *sequence.Record) map[string]*int64 {
	d := &r.Definition
	return map[string]*int64{
		attrNext: &r.Next, "start": &d.Start, "increment": &d.Increment, "min": &d.Min, "max": &d.Max,
		"block_size": &d.BlockSize, "max_block": &d.MaxBlock, "server_cache_max": &d.ServerCacheMax,
		"client_cache_min": &d.ClientCacheMin, "client_cache_max": &d.ClientCacheMax,
		"min_threshold": &d.MinThreshold, "buffer_seconds": &d.BufferSeconds,
	}
}

// encode returns the item of a record. No owner and no labels are no
// attribute.
func encode(r sequence.Record) item {
	d := r.Definition
	i := item{
		attrName: text(d.Name), attrState: text(string(r.State)), attrNonce: text(r.Nonce),
		attrEpoch: number(r.Epoch), attrVersion: number(uint64(r.Version)), "give_backs": number(r.GiveBacks),
		attrExhausted: flag(r.Exhausted), "cycle": flag(d.Cycle),
	}
	for attr, field := range signed(&r) {
		i[attr] = integer(*field)
	}
	if d.Owner != "" {
		i["owner"] = text(d.Owner)
	}
	if len(d.Labels) > 0 {
		labels := item{}
		for k, v := range d.Labels {
			labels[k] = text(v)
		}
		i["labels"] = &types.AttributeValueMemberM{Value: labels}
	}
	return i
}

// decode returns the record of an item. An attribute that is missing or of
// another kind is an error: the item is not one of ours, or somebody edited it.
func decode(i item) (sequence.Record, error) {
	d := decoder{item: i}
	var r sequence.Record
	r.Definition.Name = d.text(attrName)
	r.State, r.Nonce = sequence.State(d.text(attrState)), d.text(attrNonce)
	r.Epoch, r.Version, r.GiveBacks = d.number(attrEpoch, 64), uint32(d.number(attrVersion, 32)), d.number("give_backs", 64)
	r.Exhausted, r.Definition.Cycle = d.flag(attrExhausted), d.flag("cycle")
	for attr, field := range signed(&r) {
		*field = d.integer(attr)
	}
	if i["owner"] != nil {
		r.Definition.Owner = d.text("owner")
	}
	r.Definition.Labels = d.labels("labels")
	if d.err != nil {
		return sequence.Record{}, foreignItem(r.Definition.Name, d.err)
	}
	return r, nil
}

// A decoder reads attributes and keeps the first error.
type decoder struct {
	item item
	err  error
}

func (d *decoder) fail(attr, want string) {
	if d.err == nil {
		d.err = fmt.Errorf("attribute %q is not %s", attr, want)
	}
}

func (d *decoder) text(attr string) string {
	s, ok := d.item[attr].(*types.AttributeValueMemberS)
	if !ok {
		d.fail(attr, "a string")
		return ""
	}
	return s.Value
}

func (d *decoder) flag(attr string) bool {
	b, ok := d.item[attr].(*types.AttributeValueMemberBOOL)
	if !ok {
		d.fail(attr, "a boolean")
		return false
	}
	return b.Value
}

func (d *decoder) integer(attr string) int64 {
	v, err := strconv.ParseInt(d.digits(attr), 10, 64)
	if err != nil {
		d.fail(attr, "a 64-bit integer")
	}
	return v
}

func (d *decoder) number(attr string, bits int) uint64 {
	v, err := strconv.ParseUint(d.digits(attr), 10, bits)
	if err != nil {
		d.fail(attr, fmt.Sprintf("a natural number of %d bits", bits))
	}
	return v
}

func (d *decoder) digits(attr string) string {
	n, ok := d.item[attr].(*types.AttributeValueMemberN)
	if !ok {
		return ""
	}
	return n.Value
}

func (d *decoder) labels(attr string) map[string]string {
	if d.item[attr] == nil {
		return nil
	}
	m, ok := d.item[attr].(*types.AttributeValueMemberM)
	if !ok {
		d.fail(attr, "a map")
		return nil
	}
	values := decoder{item: m.Value}
	labels := make(map[string]string, len(m.Value))
	for k := range m.Value {
		labels[k] = values.text(k)
	}
	if values.err != nil {
		d.fail(attr, "a map of strings")
	}
	return labels
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func flag(b bool) types.AttributeValue   { return &types.AttributeValueMemberBOOL{Value: b} }
func integer(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}
func number(v uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(v, 10)}
}
