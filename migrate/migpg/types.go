package migpg

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// A codec makes a value of what PostgreSQL prints.
type codec func(text string) (migrate.Value, error)

// codecs has the base types by their name in pg_type.
var codecs = map[string]codec{
	"bool": boolean, "bytea": hexBytes,
	"int2": number, "int4": number, "int8": number, "oid": number, "numeric": number, "float4": number, "float8": number,
	"text": text, "varchar": text, "bpchar": text, "citext": text, "name": text, "char": text, "xml": text,
	"uuid": text, "inet": text, "cidr": text, "macaddr": text, "macaddr8": text, "bit": text, "varbit": text,
	"date": text, "time": text, "timetz": text, "interval": text,
	"timestamp": instant, "timestamptz": instant,
	"json": json, "jsonb": json,
}

func number(s string) (migrate.Value, error) {
	return migrate.Value{Kind: migrate.Number, Text: s}, nil
}

func text(s string) (migrate.Value, error) { return migrate.Value{Kind: migrate.Text, Text: s}, nil }

func json(s string) (migrate.Value, error) { return migrate.Value{Kind: migrate.JSON, Text: s}, nil }

// rawBytes is for columns that are read in binary form.
func rawBytes(s string) (migrate.Value, error) {
	return migrate.Value{Kind: migrate.Bytes, Text: s}, nil
}

func boolean(s string) (migrate.Value, error) {
	return migrate.Value{Kind: migrate.Bool, Text: strconv.FormatBool(s == "t")}, nil
}

func hexBytes(s string) (migrate.Value, error) {
	digits, isHex := strings.CutPrefix(s, `\x`)
	b, err := hex.DecodeString(digits)
	if err != nil || !isHex {
		return migrate.Value{}, errors.New("bytea is not in hexadecimal")
	}
	return rawBytes(string(b))
}

// instant makes RFC 3339 of "2024-10-20 02:59:00.5+00"; what it has no word
// for keeps PostgreSQL's: infinity, BC, years of five digits.
func instant(s string) (migrate.Value, error) {
	s = strings.Replace(s, " ", "T", 1)
	if whole, bc := strings.CutSuffix(s, " BC"); bc {
		return text(zulu(whole) + " BC")
	}
	return text(zulu(s))
}

func zulu(s string) string {
	if utc, ok := strings.CutSuffix(s, "+00"); ok {
		return utc + "Z"
	}
	return s
}

// versionOf returns the version that a value stands for.
func versionOf(v migrate.Value) (int64, error) {
	switch {
	case v.Kind == migrate.Number:
		return strconv.ParseInt(v.Text, 10, 64)
	case v.Kind != migrate.Text:
		return 0, errors.New("is null")
	case v.Text == "infinity":
		return math.MaxInt64, nil
	case v.Text == "-infinity":
		return math.MinInt64, nil
	}
	t, err := parseInstant(v.Text)
	return t.UnixMicro(), err
}

// parseInstant is the inverse of [instant] for finite ones.
func parseInstant(s string) (time.Time, error) {
	whole, bc := strings.CutSuffix(s, " BC")
	if !strings.HasSuffix(whole, "Z") {
		whole += "Z"
	}
	if t, err := time.Parse(time.RFC3339Nano, whole); err == nil && !bc {
		return t, nil
	}
	digits, rest, _ := strings.Cut(whole, "-")
	year, err := strconv.Atoi(digits)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no time", s)
	}
	if bc {
		year = 1 - year
	}
	t, err := time.Parse(time.RFC3339Nano, "2000-"+rest) // a leap year
	return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC), err
}

// arrayOf returns the codec of arrays.
func arrayOf(element codec) codec {
	return func(s string) (migrate.Value, error) {
		if strings.HasPrefix(s, "[") { // lower bounds
			_, s, _ = strings.Cut(s, "=")
		}
		a := array{text: s, element: element}
		v, err := a.list()
		if err == nil && a.text != "" {
			err = errors.New("array goes on after its end")
		}
		return v, err
	}
}

// An array is read from the front of its text.
type array struct {
	text    string
	element codec
}

// list reads {...}.
func (a *array) list() (migrate.Value, error) {
	v := migrate.Value{Kind: migrate.List, List: []migrate.Value{}}
	if !a.take('{') {
		return v, errors.New("array does not begin with {")
	}
	if a.take('}') {
		return v, nil
	}
	for {
		e, err := a.value()
		if err != nil {
			return v, err
		}
		v.List = append(v.List, e)
		if a.take('}') {
			v.List = slices.Clip(v.List)
			return v, nil
		}
		if !a.take(',') {
			return v, errors.New("array does not end")
		}
	}
}

func (a *array) take(c byte) bool {
	if a.text == "" || a.text[0] != c {
		return false
	}
	a.text = a.text[1:]
	return true
}

// value reads one element.
func (a *array) value() (migrate.Value, error) {
	if strings.HasPrefix(a.text, "{") {
		return a.list()
	}
	if a.take('"') {
		s, err := a.quoted()
		if err != nil {
			return migrate.Value{}, err
		}
		return a.element(s)
	}
	end := strings.IndexAny(a.text, ",}")
	if end < 0 {
		return migrate.Value{}, errors.New("array does not end")
	}
	s := a.text[:end]
	a.text = a.text[end:]
	if s == "NULL" {
		return migrate.Value{}, nil
	}
	return a.element(s)
}

// quoted reads the rest of "...", in which a backslash quotes any character.
func (a *array) quoted() (string, error) {
	var b strings.Builder
	for i := 0; i < len(a.text); i++ {
		switch c := a.text[i]; c {
		case '"':
			a.text = a.text[i+1:]
			return b.String(), nil
		case '\\':
			i++
			if i < len(a.text) {
				b.WriteByte(a.text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", errors.New("array element does not end")
}
