package migdynamo

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
)

// A schema is the key of a table.
type schema struct {
	attrs []keyAttr // partition, and sort if there is one
}

type keyAttr struct {
	name  string
	kind  types.ScalarAttributeType
	limit int // bytes
}

// ref returns how an item is named: the values of its key, as
// [migrate.Key.String] writes them. It fails if DynamoDB would not take the
// key.
func (s schema) ref(i item) (string, error) {
	var room [2]string // as many as a table's key has at the most
	k := migrate.Key(room[:len(s.attrs)])
	for n, a := range s.attrs {
		text, err := a.text(i[a.name])
		if err != nil {
			return "", err
		}
		k[n] = text
	}
	return k.String(), nil
}

// refOf returns the ref of a row, and its partition.
func (s schema) refOf(r migrate.Row) (ref, partition string, err error) {
	i := item{}
	for _, f := range r.Fields {
		if !s.has(f.Name) {
			continue
		}
		if err := encodeField(i, f); err != nil {
			return "", "", err
		}
	}
	if ref, err = s.ref(i); err != nil {
		return "", "", err
	}
	partition, err = s.attrs[0].text(i[s.attrs[0].name])
	return ref, partition, err
}

func (s schema) has(name string) bool {
	for _, a := range s.attrs {
		if a.name == name {
			return true
		}
	}
	return false
}

// text returns a key value as text, or why it cannot be one.
func (a keyAttr) text(v types.AttributeValue) (string, error) {
	text, kind := scalar(v)
	switch {
	case v == nil:
		return "", fmt.Errorf("there is no attribute %q, which is part of the table's key", a.name)
	case kind != a.kind:
		return "", fmt.Errorf("attribute %q of the table's key is of type %s, not %s", a.name, kindName(v), a.kind)
	case text == "":
		return "", fmt.Errorf("attribute %q of the table's key is empty", a.name)
	case len(text) > a.limit:
		return "", fmt.Errorf("attribute %q of the table's key has %d bytes, at most %d", a.name, len(text), a.limit)
	}
	return text, nil
}

// scalar returns what a key attribute can be as text, numbers in plain
// decimal.
func scalar(v types.AttributeValue) (string, types.ScalarAttributeType) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value, types.ScalarAttributeTypeS
	case *types.AttributeValueMemberN:
		d, err := parseDecimal(v.Value)
		if err != nil {
			return v.Value, types.ScalarAttributeTypeN
		}
		return d.plain(), types.ScalarAttributeTypeN
	case *types.AttributeValueMemberB:
		return string(v.Value), types.ScalarAttributeTypeB
	}
	return "", ""
}

// kindName returns DynamoDB's name of a value's type.
func kindName(v types.AttributeValue) string {
	if _, kind := scalar(v); kind != "" {
		return string(kind)
	}
	switch v.(type) {
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberL:
		return "L"
	}
	return "M"
}

// keyOf returns the key attributes of an item.
func (s schema) keyOf(i item) item {
	k := make(item, len(s.attrs))
	for _, a := range s.attrs {
		k[a.name] = i[a.name]
	}
	return k
}

// parseRef returns the key attributes that ref names.
func (s schema) parseRef(ref string) (item, error) {
	k, err := migrate.ParseKey(ref)
	if err != nil || len(k) != len(s.attrs) {
		return nil, fmt.Errorf("%q does not name an item of this table", ref)
	}
	i := make(item, len(k))
	for n, a := range s.attrs {
		i[a.name] = a.value(k[n])
	}
	return i, nil
}

func (a keyAttr) value(text string) types.AttributeValue {
	switch a.kind {
	case types.ScalarAttributeTypeN:
		return &types.AttributeValueMemberN{Value: text}
	case types.ScalarAttributeTypeB:
		return &types.AttributeValueMemberB{Value: []byte(text)}
	}
	return &types.AttributeValueMemberS{Value: text}
}

// sourceKey returns the key in the source of the row that an item holds, and
// false if the item does not tell.
func (s *Sink) sourceKey(i item) (migrate.Key, bool) {
	if noted, ok := i[AttrKey].(*types.AttributeValueMemberS); ok {
		k, err := migrate.ParseKey(noted.Value)
		return k, err == nil
	}
	k := make(migrate.Key, len(s.keyColumns))
	for n, attr := range s.keyColumns {
		text, kind := scalar(i[attr])
		if kind != types.ScalarAttributeTypeS && kind != types.ScalarAttributeTypeN {
			return nil, false
		}
		k[n] = text
	}
	return k, true
}

// tells reports whether attributes of an item are the key k of its row: what
// sourceKey returns of an item without AttrKey.
func (s *Sink) tells(i item, k migrate.Key) bool {
	if len(k) != len(s.keyColumns) {
		return false
	}
	for n, attr := range s.keyColumns {
		text, kind := scalar(i[attr])
		if kind != types.ScalarAttributeTypeS && kind != types.ScalarAttributeTypeN || text != k[n] {
			return false
		}
	}
	return true
}

// stored returns what an item is to the engine.
func (s *Sink) stored(i item) migrate.Stored {
	ref, _ := s.schema.ref(i) // it has a key: the table wants one
	key, _ := s.sourceKey(i)
	version, _ := versionOf(i)
	return migrate.Stored{Found: true, Tombstone: isTombstone(i), Version: version, Key: key, Digest: s.digestOf(i), Ref: ref}
}

func isTombstone(i item) bool {
	d, ok := i[AttrDeleted].(*types.AttributeValueMemberBOOL)
	return ok && d.Value
}

// versionOf returns the version of an item, and false if it has none.
func versionOf(i item) (int64, bool) {
	n, ok := i[AttrVersion].(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	d, err := parseDecimal(n.Value)
	if err != nil {
		return 0, false
	}
	return d.int64()
}
