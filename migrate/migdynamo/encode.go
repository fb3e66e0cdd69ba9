package migdynamo

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

// The attributes of ours, beside those of the row. No column may have their
// names.
const (
	AttrVersion = "_version" // number: the row's version, in guarded mode
	AttrDeleted = "_deleted" // true: the row was deleted; there is nothing else but the key and the version
	AttrKey     = "_key"     // text: the row's key in the source, by [migrate.Key.String], where other attributes do not tell it
)

type item = map[string]types.AttributeValue

// An entry is a row as it is written.
type entry struct {
	item    item
	ref     string
	size    int
	version int64
	key     migrate.Key // of the source
}

// encode returns the item of a row, or why DynamoDB cannot hold it. It depends
// on nothing but the row and the plan.
func (s *Sink) encode(r migrate.Row) (entry, error) {
	return s.encodeInto(make(item, len(r.Fields)+2), r)
}

// encodeInto is encode with an empty item to fill.
func (s *Sink) encodeInto(i item, r migrate.Row) (entry, error) {
	for _, f := range r.Fields {
		if err := encodeField(i, f); err != nil {
			return entry{}, err
		}
	}
	ref, err := s.schema.ref(i)
	if err != nil {
		return entry{}, err
	}
	if !s.tells(i, r.Key) {
		i[AttrKey] = &types.AttributeValueMemberS{Value: r.Key.String()}
	}
	if s.mode == migrate.Guarded {
		i[AttrVersion] = integer(r.Version)
	}
	e := entry{item: i, ref: ref, size: sizeOf(i), version: r.Version, key: r.Key}
	return e, checkSize(i, e.size)
}

func encodeField(i item, f migrate.Field) error {
	switch {
	case reserved(f.Name):
		return fmt.Errorf("attribute %q is reserved", f.Name)
	case f.Name == "" || !utf8.ValidString(f.Name):
		return fmt.Errorf("%q cannot be the name of an attribute", f.Name)
	}
	v, err := encodeValue(f.Value, f.Map, 0)
	if err != nil {
		return at(f.Name, err)
	}
	before := len(i)
	if i[f.Name] = v; len(i) == before {
		return fmt.Errorf("two columns are stored as attribute %q", f.Name)
	}
	return nil
}

func reserved(name string) bool { return name == AttrVersion || name == AttrDeleted || name == AttrKey }

// encodeValue returns a value that lies in level lists and maps.
func encodeValue(v migrate.Value, asMap bool, level int) (types.AttributeValue, error) {
	switch v.Kind {
	case migrate.Null:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case migrate.Bool:
		return encodeBool(v.Text)
	case migrate.Number:
		return encodeNumber(v.Text)
	case migrate.Bytes:
		return &types.AttributeValueMemberB{Value: []byte(v.Text)}, nil
	case migrate.List:
		return encodeList(v.List, asMap, level)
	}
	if !utf8.ValidString(v.Text) { // the SDK would put other characters in place of it
		return nil, errors.New("the text is not UTF-8")
	}
	if v.Kind == migrate.JSON && asMap {
		return parseJSON(v.Text, level)
	}
	return &types.AttributeValueMemberS{Value: v.Text}, nil
}

func encodeBool(s string) (types.AttributeValue, error) {
	if s != "true" && s != "false" {
		return nil, fmt.Errorf("%q is not a boolean", s)
	}
	return &types.AttributeValueMemberBOOL{Value: s == "true"}, nil
}

// encodeNumber keeps the digits as they are: DynamoDB drops zeros at the ends
// itself.
func encodeNumber(s string) (types.AttributeValue, error) {
	d, err := parseDecimal(s)
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return nil, err
	}
	return &types.AttributeValueMemberN{Value: s}, nil
}

func encodeList(elements []migrate.Value, asMap bool, level int) (types.AttributeValue, error) {
	if level >= maxLevels {
		return nil, fmt.Errorf("lists and maps lie more than %d deep", maxLevels)
	}
	l := make([]types.AttributeValue, len(elements))
	for n, e := range elements {
		var err error
		if l[n], err = encodeValue(e, asMap, level+1); err != nil {
			return nil, at("["+strconv.Itoa(n)+"]", err)
		}
	}
	return &types.AttributeValueMemberL{Value: l}, nil
}

func integer(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}
