package migdynamo

import (
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Canonical returns the content of an item as bytes: the same for items that
// hold the same, whoever wrote them and however they spell their numbers.
//
// Attributes come sorted by name, each as its name and its value. A name, like
// every text, is its length in bytes, a colon and its bytes. A value begins
// with its kind:
//
//	z            null
//	t, f         true, false
//	n4:15e-1     number: digits without zeros at either end, and a power of
//	             ten unless it is 0; 1.50 is 15e-1, 100 is 1e2, -0 is 0
//	s5:hello     text
//	b2:..        bytes
//	l2:          list, and as many values
//	m2:          map, and as many names with values, sorted
//	S2: N2: B2:  set, and as many values, sorted
//
// [AttrVersion] and [AttrDeleted] are left out: they are no content.
func Canonical(item map[string]types.AttributeValue) []byte {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if name == AttrVersion || name == AttrDeleted {
			continue
		}
		b = appendText(b, name)
		b = appendValue(b, item[name])
	}
	return b
}

func appendValue(b []byte, v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberNULL:
		return append(b, 'z')
	case *types.AttributeValueMemberBOOL:
		if v.Value {
			return append(b, 't')
		}
		return append(b, 'f')
	case *types.AttributeValueMemberN:
		return appendText(append(b, 'n'), normalNumber(v.Value))
	case *types.AttributeValueMemberS:
		return appendText(append(b, 's'), v.Value)
	case *types.AttributeValueMemberB:
		return appendText(append(b, 'b'), v.Value)
	case *types.AttributeValueMemberL:
		b = appendCount(b, 'l', len(v.Value))
		for _, e := range v.Value {
			b = appendValue(b, e)
		}
		return b
	case *types.AttributeValueMemberM:
		b = appendCount(b, 'm', len(v.Value))
		for _, name := range slices.Sorted(maps.Keys(v.Value)) {
			b = appendValue(appendText(b, name), v.Value[name])
		}
		return b
	}
	return appendSet(b, v)
}

// appendSet appends a set, which only others write.
func appendSet(b []byte, v types.AttributeValue) []byte {
	var kind byte
	var elements []string
	switch v := v.(type) {
	case *types.AttributeValueMemberSS:
		kind, elements = 'S', slices.Clone(v.Value)
	case *types.AttributeValueMemberNS:
		kind = 'N'
		for _, n := range v.Value {
			elements = append(elements, normalNumber(n))
		}
	case *types.AttributeValueMemberBS:
		kind = 'B'
		for _, e := range v.Value {
			elements = append(elements, string(e))
		}
	default: // a kind that this SDK does not know
		return append(b, '?')
	}
	slices.Sort(elements)
	b = appendCount(b, kind, len(elements))
	for _, e := range elements {
		b = appendText(b, e)
	}
	return b
}

func normalNumber(s string) string {
	d, err := parseDecimal(s)
	if err != nil {
		return s
	}
	return string(d.append(nil))
}

func appendText[T string | []byte](b []byte, s T) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	return append(append(b, ':'), s...)
}

func appendCount(b []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), ':')
}
