package migdynamo

import (
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tallystick/tallystick/migrate"
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
func Canonical(item map[string]types.AttributeValue) []byte { return appendCanonical(nil, item) }

// digestOf returns the digest of an item's canonical form, whose memory it uses
// again and again: at full speed it would be half of all that is allocated.
func (s *Sink) digestOf(i item) migrate.Digest {
	b, _ := s.scratch.Get().(*[]byte)
	if b == nil {
		b = new([]byte)
	}
	defer s.scratch.Put(b)
	*b = appendNamed((*b)[:0], i, s.namesOf(i))
	return migrate.DigestOf(*b)
}

func appendCanonical(b []byte, i item) []byte {
	var room [usualNames]string
	return appendNamed(b, i, sortedNames(i, room[:0]))
}

// appendNamed appends the attributes of those names, which are all that i has,
// sorted.
func appendNamed(b []byte, i item, names []string) []byte {
	for _, name := range names {
		if name == AttrVersion || name == AttrDeleted {
			continue
		}
		b = appendText(b, name)
		b = appendValue(b, i[name])
	}
	return b
}

// namesOf returns the sorted names of an item: those of the item before, if they
// are the same, as they are of rows of one table.
func (s *Sink) namesOf(i item) []string {
	if last := s.names.Load(); last != nil && len(*last) == len(i) {
		same := true
		for _, name := range *last {
			if _, same = i[name]; !same {
				break
			}
		}
		if same {
			return *last
		}
	}
	names := sortedNames(i, nil)
	s.names.Store(&names)
	return names
}

// usualNames is how many names are sorted without allocating memory.
const usualNames = 16

// sortedNames appends the names of i to room.
func sortedNames(i item, room []string) []string {
	for name := range i {
		room = append(room, name)
	}
	slices.Sort(room)
	return room
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
		return appendNumber(append(b, 'n'), v.Value)
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
		return appendMap(b, v.Value)
	}
	return appendSet(b, v)
}

func appendMap(b []byte, m item) []byte {
	b = appendCount(b, 'm', len(m))
	var room [usualNames]string
	for _, name := range sortedNames(m, room[:0]) {
		b = appendValue(appendText(b, name), m[name])
	}
	return b
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

// appendNumber appends the text that normalNumber returns.
func appendNumber(b []byte, s string) []byte {
	d, err := parseDecimal(s)
	if err != nil {
		return appendText(b, s)
	}
	var room [64]byte
	return appendText(b, d.append(room[:0]))
}

func appendText[T string | []byte](b []byte, s T) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	return append(append(b, ':'), s...)
}

func appendCount(b []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), ':')
}
