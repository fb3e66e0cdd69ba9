package migrate

// A Kind says what a [Value] is.
type Kind uint8

// The kinds. A source reduces the types of its columns to them without losing
// anything: numbers keep their digits, JSON its text.
const (
	Null   Kind = iota
	Bool        // Text is "true" or "false"
	Number      // Text is the number in decimal, as exact as the source has it; also NaN, Infinity and -Infinity
	Text        // Text is the text
	Bytes       // Text holds the bytes
	JSON        // Text is JSON as the source prints it
	List        // List has the elements
)

// A Value is one column of a row. The zero Value is null.
type Value struct {
	Kind Kind
	Text string
	List []Value
}

// A Field is a named value.
type Field struct {
	Name  string
	Value Value
	Map   bool // a JSON value goes into the sink as a map instead of as its text
}

// A Row is a row of the source on its way to the sink. The engine does not
// change a row; a [Mapping] returns another.
type Row struct {
	Key     Key
	Version int64 // grows with each change of the row; 0 without a version column
	Fields  []Field
}

// Size returns about how many bytes the row takes in memory.
func (r Row) Size() int {
	n := 64
	for _, k := range r.Key {
		n += 16 + len(k)
	}
	for _, f := range r.Fields {
		n += 16 + len(f.Name) + f.Value.size()
	}
	return n
}

func (v Value) size() int {
	n := 48 + len(v.Text)
	for _, e := range v.List {
		n += e.size()
	}
	return n
}

// Data returns how many bytes of data the row has: of its values as the source
// prints them.
func (r Row) Data() int {
	n := 0
	for _, f := range r.Fields {
		n += f.Value.data()
	}
	return n
}

func (v Value) data() int {
	n := len(v.Text)
	for _, e := range v.List {
		n += e.data()
	}
	return n
}

// A Mapping makes the sink's row of the source's. It is a pure function: the
// same row always gives the same result, whichever pod asks. Its error sends
// the row to quarantine.
type Mapping func(Row) (Row, error)
