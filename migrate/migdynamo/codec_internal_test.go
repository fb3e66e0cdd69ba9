package migdynamo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tallystick/tallystick/migrate"
)

func codec(mode migrate.Mode, keyColumns ...string) *Sink {
	s := &Sink{mode: mode, keyColumns: keyColumns, schema: schema{attrs: []keyAttr{
		{"p", types.ScalarAttributeTypeS, maxPartition}, {"n", types.ScalarAttributeTypeN, maxSort}}}}
	s.guards = newGuards(s.schema, keyColumns)
	return s
}

func value(k migrate.Kind, text string) migrate.Value { return migrate.Value{Kind: k, Text: text} }

func TestCanonicalFormOfValues(t *testing.T) {
	j := func(text string) migrate.Value { return value(migrate.JSON, text) }
	for _, c := range []struct {
		v     migrate.Value
		asMap bool
		want  string
	}{
		{migrate.Value{}, false, `z`},
		{value(migrate.Bool, "true"), false, `t`},
		{value(migrate.Bool, "false"), false, `f`},
		{value(migrate.Number, "0"), false, `n1:0`},
		{value(migrate.Number, "-0.00"), false, `n1:0`},
		{value(migrate.Number, "1.50"), false, `n5:15e-1`},
		{value(migrate.Number, "1.5"), false, `n5:15e-1`},
		{value(migrate.Number, "15e-1"), false, `n5:15e-1`},
		{value(migrate.Number, "-100"), false, `n4:-1e2`},
		{value(migrate.Number, "9007199254740993"), false, `n16:9007199254740993`},
		{value(migrate.Number, "0.00012345678901234567890123456789012345678"), false, `n42:12345678901234567890123456789012345678e-41`},
		{value(migrate.Text, ""), false, `s0:`},
		{value(migrate.Text, "añ\x00"), false, "s4:añ\x00"},
		{value(migrate.Bytes, "\xff\x00"), false, "b2:\xff\x00"},
		{value(migrate.Bytes, ""), false, "b0:"},
		{migrate.Value{Kind: migrate.List}, false, `l0:`},
		{migrate.Value{Kind: migrate.List, List: []migrate.Value{value(migrate.Text, "a"), {}}}, false, `l2:s1:az`},
		{j(`{"b": 1.50, "a": null}`), false, `s22:{"b": 1.50, "a": null}`},
		{j(`{"b": 1.50, "a": null}`), true, `m2:1:az1:bn5:15e-1`},
		{j(`[true, "\u0000\ud83d\ude00\n", {}]`), true, "l3:ts6:\x00😀\nm0:"},
		{j(`9007199254740993`), true, `n16:9007199254740993`},
	} {
		v, err := encodeValue(c.v, c.asMap, 0)
		if err != nil {
			t.Errorf("%v: %v", c.v, err)
			continue
		}
		if got := string(appendValue(nil, v)); got != c.want {
			t.Errorf("%v as map %t: %q, want %q", c.v, c.asMap, got, c.want)
		}
	}
}

func TestCanonicalFormOfItems(t *testing.T) {
	got := string(Canonical(item{
		"b": &types.AttributeValueMemberSS{Value: []string{"y", "x"}}, "a": &types.AttributeValueMemberNS{Value: []string{"2.0", "10"}},
		"c": &types.AttributeValueMemberBS{Value: [][]byte{{2}, {1}}}, AttrVersion: integer(7), AttrDeleted: &types.AttributeValueMemberBOOL{Value: true},
	}))
	if want := "1:aN2:3:1e11:21:bS2:1:x1:y1:cB2:1:\x011:\x02"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRowsBecomeItems(t *testing.T) {
	row := migrate.Row{Key: migrate.Key{"7", "x"}, Version: 3, Fields: []migrate.Field{
		{Name: "p", Value: value(migrate.Text, "room")}, {Name: "n", Value: value(migrate.Number, "7.0")}, {Name: "v", Value: value(migrate.Text, "x")}}}
	s, n := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }, func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
	for name, c := range map[string]struct {
		sink *Sink
		want item
	}{
		"its attributes tell the key": {codec(migrate.Absent, "n", "v"), item{"p": s("room"), "n": n("7.0"), "v": s("x")}},
		"guarded":                     {codec(migrate.Guarded, "n", "v"), item{"p": s("room"), "n": n("7.0"), "v": s("x"), "_version": n("3")}},
		"a column is not there":       {codec(migrate.Absent, "n", "other"), item{"p": s("room"), "n": n("7.0"), "v": s("x"), "_key": s("7~x")}},
		"a column tells otherwise":    {codec(migrate.Absent, "p", "v"), item{"p": s("room"), "n": n("7.0"), "v": s("x"), "_key": s("7~x")}},
	} {
		e, err := c.sink.encode(row)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, e.item, cmp.AllowUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got := c.sink.stored(e.item); !got.Key.Equal(row.Key) || got.Ref != "room~7" {
			t.Errorf("%s: key %v, ref %s", name, got.Key, got.Ref)
		}
	}
}

func TestWhatCannotBeStoredIsRefusedWithItsPlace(t *testing.T) {
	deep := strings.Repeat("[", 33) + strings.Repeat("]", 33)
	digits := strings.Repeat("9", 39)
	for _, c := range []struct {
		field migrate.Field
		want  string
	}{
		{migrate.Field{Name: "a", Value: value(migrate.Number, digits)}, `attribute "a": the number has 39 significant digits, at most 38`},
		{migrate.Field{Name: "a", Value: value(migrate.Number, "NaN")}, `"NaN" is not a number`},
		{migrate.Field{Name: "a", Value: value(migrate.Number, "-Infinity")}, `"-Infinity" is not a number`},
		{migrate.Field{Name: "a", Value: value(migrate.Number, "1e126")}, `magnitude 1E+126`},
		{migrate.Field{Name: "a", Value: value(migrate.Number, "0."+strings.Repeat("0", 130)+"1")}, `magnitude 1E-131`},
		{migrate.Field{Name: "a", Value: value(migrate.Number, "1e99999999999999999999")}, `not a number that DynamoDB can hold`},
		{migrate.Field{Name: "a", Value: value(migrate.Text, "\xff")}, `attribute "a": the text is not UTF-8`},
		{migrate.Field{Name: "a", Value: migrate.Value{Kind: migrate.List, List: []migrate.Value{{}, value(migrate.Number, digits)}}}, `attribute "a[1]": the number has 39`},
		{migrate.Field{Name: "a", Value: value(migrate.JSON, `{"items": [1, {"price": `+digits+`}]}`), Map: true}, `attribute "a.items[1].price": the number has 39`},
		{migrate.Field{Name: "a", Value: value(migrate.JSON, `{"x": {"b": 1, "b": 2}}`), Map: true}, `attribute "a.x.b": the name comes twice`},
		{migrate.Field{Name: "a", Value: value(migrate.JSON, `{"x": "\ud800"}`), Map: true}, `attribute "a.x": \ud800 is half of a surrogate pair`},
		{migrate.Field{Name: "a", Value: value(migrate.JSON, deep), Map: true}, `lists and maps lie more than 32 deep`},
		{migrate.Field{Name: "a", Value: value(migrate.JSON, `{"x": 1`), Map: true}, `not JSON`},
		{migrate.Field{Name: "p", Value: value(migrate.Text, "")}, `two columns are stored as attribute "p"`},
		{migrate.Field{Name: "_version"}, `attribute "_version" is reserved`},
		{migrate.Field{Name: ""}, `cannot be the name of an attribute`},
		{migrate.Field{Name: "a", Value: value(migrate.Text, strings.Repeat("x", maxItem))}, `at most 409600; attribute "a" alone has 409600`},
	} {
		row := migrate.Row{Key: migrate.Key{"1"}, Fields: []migrate.Field{
			{Name: "p", Value: value(migrate.Text, "room")}, {Name: "n", Value: value(migrate.Number, "1")}, c.field}}
		if _, err := codec(migrate.Guarded, "n").encode(row); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, want %q", c.field.Value.Text, err, c.want)
		}
	}
}

func TestKeysThatATableCannotHave(t *testing.T) {
	long := strings.Repeat("x", 2049)
	for _, c := range []struct {
		p    migrate.Value
		n    migrate.Value
		want string
	}{
		{value(migrate.Text, ""), value(migrate.Number, "1"), `attribute "p" of the table's key is empty`},
		{value(migrate.Text, long), value(migrate.Number, "1"), `has 2049 bytes, at most 2048`},
		{value(migrate.Number, "1"), value(migrate.Number, "1"), `is of type N, not S`},
		{migrate.Value{}, value(migrate.Number, "1"), `is of type NULL, not S`},
		{value(migrate.Text, "a"), value(migrate.Text, "1"), `attribute "n" of the table's key is of type S, not N`},
	} {
		row := migrate.Row{Key: migrate.Key{"1"}, Fields: []migrate.Field{{Name: "p", Value: c.p}, {Name: "n", Value: c.n}}}
		_, _, err := codec(migrate.Guarded, "n").schema.refOf(row)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	row := migrate.Row{Key: migrate.Key{"1"}, Fields: []migrate.Field{{Name: "p", Value: value(migrate.Text, "a")}}}
	if _, _, err := codec(migrate.Guarded, "n").schema.refOf(row); err == nil || !strings.Contains(err.Error(), `there is no attribute "n"`) {
		t.Errorf("no sort key: %v", err)
	}
}

var decimals = rapid.Custom(func(t *rapid.T) string {
	s := rapid.StringMatching(`-?[0-9]{1,20}(\.[0-9]{1,17})?`).Draw(t, "mantissa")
	if rapid.Bool().Draw(t, "scientific") {
		s += fmt.Sprintf("e%d", rapid.IntRange(-60, 60).Draw(t, "exponent"))
	}
	return s
})

// The oracle is math/big.
func TestNumbersAreEqualWhereTheirNormalFormsAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := decimals.Draw(t, "a")
		d, err := parseDecimal(a)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := new(big.Rat).SetString(a)
		for _, text := range []string{string(d.append(nil)), d.plain()} {
			if got, ok := new(big.Rat).SetString(text); !ok || got.Cmp(want) != 0 {
				t.Fatalf("%s became %s", a, text)
			}
		}
		again, err := parseDecimal(d.plain())
		if err != nil || again != d {
			t.Fatalf("%s is %+v, and %s is %+v", a, d, d.plain(), again)
		}
	})
}

// The sizes are dynalite's, which were measured on AWS.
func TestSizesOfNumbers(t *testing.T) {
	for text, want := range map[string]int{"0": 1, "1": 2, "10": 2, "12": 2, "123": 3, "1234": 3, "120": 3, "-1": 3, "0.1": 2, "99": 2, "-1234567": 6} {
		d, err := parseDecimal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.size(); got != want {
			t.Errorf("%s has %d bytes, want %d", text, got, want)
		}
	}
}

// native returns a tree as encoding/json decodes it with UseNumber.
func native(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return json.Number(v.Value)
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberL:
		l := make([]any, len(v.Value))
		for i, e := range v.Value {
			l[i] = native(e)
		}
		return l
	case *types.AttributeValueMemberM:
		m := map[string]any{}
		for k, e := range v.Value {
			m[k] = native(e)
		}
		return m
	}
	return nil
}

// FuzzParseJSON compares with encoding/json: what is taken means the same
// there.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{`{"a": [1, -0.5e3, "x\u00e9\ud83d\ude00\n", null, true]}`, `[]`, ` {} `, `007`, `"\ud800"`, `{"a":1,"a":2}`, `[1,]`, `{"a":}`, `1 2`, `"\x"`, `tru`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := encodeValue(value(migrate.JSON, text), true, 0)
		if err != nil {
			return
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil || !json.Valid([]byte(text)) {
			t.Fatalf("%q is taken, and %v", text, err)
		}
		if got := native(v); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %#v, want %#v", text, got, want)
		}
	})
}

var jsonTrees = rapid.Custom(func(t *rapid.T) any { return jsonTree(t, 0) })

func jsonTree(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth > 3 {
		kind %= 4
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.String().Draw(t, "text")
	case 3:
		d, _ := parseDecimal(decimals.Draw(t, "number"))
		return json.Number(d.plain())
	case 4:
		l := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range l {
			l[i] = jsonTree(t, depth+1)
		}
		return l
	}
	m := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "names") {
		m[rapid.String().Draw(t, "name")] = jsonTree(t, depth+1)
	}
	return m
}

// Any tree comes out of its JSON as it went in, and what is read back from the
// items means the same again.
func TestTreesOfJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := jsonTrees.Draw(t, "tree")
		text, err := json.MarshalIndent(tree, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		v, err := parseJSON(string(text), 0)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(native(v), decoded(t, text)) {
			t.Fatalf("%s became %#v", text, native(v))
		}
		again, _ := json.Marshal(native(v))
		w, err := parseJSON(string(again), 0)
		if err != nil || !bytes.Equal(appendValue(nil, v), appendValue(nil, w)) {
			t.Fatalf("%s is %q, then %q, %v", text, appendValue(nil, v), appendValue(nil, w), err)
		}
	})
}

func decoded(t *rapid.T, text []byte) (v any) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
