package migdynamo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// parseJSON returns JSON as a tree of attribute values. Numbers keep their
// digits. What a tree cannot hold exactly is an error that says where: a number
// beyond DynamoDB's, a name that comes twice, half a surrogate pair.
//
// It is written by hand because encoding/json makes float64 of numbers, or
// takes several times as long.
func parseJSON(text string, level int) (types.AttributeValue, error) {
	p := jsonParser{text: text}
	v, err := p.value(level)
	if err != nil {
		return nil, err
	}
	if p.space(); p.pos < len(p.text) {
		return nil, p.unexpected()
	}
	return v, nil
}

type jsonParser struct {
	text string
	pos  int
}

func (p *jsonParser) space() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

// next returns the next byte that is no space, 0 at the end.
func (p *jsonParser) next() byte {
	if p.space(); p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *jsonParser) unexpected() error {
	return fmt.Errorf("not JSON: %.10q at byte %d", p.text[min(p.pos, len(p.text)):], p.pos)
}

func (p *jsonParser) value(level int) (types.AttributeValue, error) {
	switch c := p.next(); c {
	case '{', '[':
		if level >= maxLevels {
			return nil, fmt.Errorf("lists and maps lie more than %d deep", maxLevels)
		}
		if c == '{' {
			return p.object(level + 1)
		}
		return p.array(level + 1)
	case '"':
		s, err := p.str()
		return &types.AttributeValueMemberS{Value: s}, err
	case 't':
		return &types.AttributeValueMemberBOOL{Value: true}, p.literal("true")
	case 'f':
		return &types.AttributeValueMemberBOOL{Value: false}, p.literal("false")
	case 'n':
		return &types.AttributeValueMemberNULL{Value: true}, p.literal("null")
	}
	return p.number()
}

func (p *jsonParser) object(level int) (types.AttributeValue, error) {
	m := map[string]types.AttributeValue{}
	for p.pos++; ; p.pos++ { // the brace, a comma
		if c := p.next(); c == '}' && len(m) == 0 {
			break
		} else if c != '"' {
			return nil, p.unexpected()
		}
		name, err := p.str()
		if err != nil {
			return nil, err
		}
		if _, twice := m[name]; twice {
			return nil, at("."+name, errors.New("the name comes twice"))
		}
		if p.next() != ':' {
			return nil, p.unexpected()
		}
		p.pos++
		if m[name], err = p.value(level); err != nil {
			return nil, at("."+name, err)
		}
		if c := p.next(); c == '}' {
			break
		} else if c != ',' {
			return nil, p.unexpected()
		}
	}
	p.pos++
	return &types.AttributeValueMemberM{Value: m}, nil
}

func (p *jsonParser) array(level int) (types.AttributeValue, error) {
	l := []types.AttributeValue{}
	for p.pos++; ; p.pos++ { // the bracket, a comma
		if p.next() == ']' && len(l) == 0 {
			break
		}
		v, err := p.value(level)
		if err != nil {
			return nil, at("["+strconv.Itoa(len(l))+"]", err)
		}
		l = append(l, v)
		if c := p.next(); c == ']' {
			break
		} else if c != ',' {
			return nil, p.unexpected()
		}
	}
	p.pos++
	return &types.AttributeValueMemberL{Value: l}, nil
}

func (p *jsonParser) literal(word string) error {
	if !strings.HasPrefix(p.text[p.pos:], word) {
		return p.unexpected()
	}
	p.pos += len(word)
	return nil
}

func (p *jsonParser) number() (types.AttributeValue, error) {
	end := p.pos
	for end < len(p.text) && strings.IndexByte("+-.0123456789eE", p.text[end]) >= 0 {
		end++
	}
	digits := strings.TrimPrefix(p.text[p.pos:end], "-")
	if digits == "" || len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return nil, p.unexpected()
	}
	v, err := encodeNumber(p.text[p.pos:end])
	p.pos = end
	return v, err
}

// str returns the string that begins here: part of the text itself, if nothing
// in it is escaped.
func (p *jsonParser) str() (string, error) {
	start := p.pos + 1
	for i := start; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '"':
			p.pos = i + 1
			return p.text[start:i], nil
		case c == '\\':
			return p.escaped(start, i)
		case c < ' ':
			p.pos = i
			return "", p.unexpected()
		}
	}
	p.pos = len(p.text)
	return "", p.unexpected()
}

// escaped returns the string that begins at start and whose first escape is at
// i.
func (p *jsonParser) escaped(start, i int) (string, error) {
	b := append(make([]byte, 0, 2*(i-start)+16), p.text[start:i]...)
	for p.pos = i; p.pos < len(p.text); {
		switch c := p.text[p.pos]; {
		case c == '"':
			p.pos++
			return string(b), nil
		case c < ' ':
			return "", p.unexpected()
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, c)
			p.pos++
		}
	}
	return "", p.unexpected()
}

// escape returns what the escape that begins here stands for.
func (p *jsonParser) escape() (rune, error) {
	if p.pos+1 >= len(p.text) {
		return 0, p.unexpected()
	}
	c := p.text[p.pos+1]
	if c == 'u' {
		return p.unicode()
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 {
		return 0, p.unexpected()
	}
	p.pos += 2
	return rune("\"\\/\b\f\n\r\t"[i]), nil
}

// unicode returns the character of the escape, or of both halves of it.
func (p *jsonParser) unicode() (rune, error) {
	r, err := p.unit()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if strings.HasPrefix(p.text[p.pos:], `\u`) {
		low, err := p.unit()
		if err != nil {
			return 0, err
		}
		if whole := utf16.DecodeRune(r, low); whole != utf8.RuneError {
			return whole, nil
		}
	}
	return 0, fmt.Errorf(`\u%04x is half of a surrogate pair`, r)
}

// unit returns the four digits of the escape that begins here.
func (p *jsonParser) unit() (rune, error) {
	if p.pos+6 > len(p.text) {
		return 0, p.unexpected()
	}
	v, err := strconv.ParseUint(p.text[p.pos+2:p.pos+6], 16, 16)
	if err != nil {
		return 0, p.unexpected()
	}
	p.pos += 6
	return rune(v), nil
}

// A misfit is what DynamoDB cannot hold, and where it is.
type misfit struct {
	path string // like "data.items[3]"
	err  error
}

func (m *misfit) Error() string { return fmt.Sprintf("attribute %q: %v", m.path, m.err) }

// at says that err is at step, within what the caller knows.
func at(step string, err error) error {
	if m, ok := err.(*misfit); ok {
		return &misfit{step + m.path, m.err}
	}
	return &misfit{step, err}
}
