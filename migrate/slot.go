package migrate

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Slot is a range of keys: the unit of claiming, progress and retry. Slots
// lie side by side along an [Axis], one per index.
type Slot struct {
	Index int64
	Below Key // not nil: only the part of the slot that lies below this key, split off from the rest
}

// An Axis says how keys are cut into slots: by the time that is in them, or by
// their own value. It knows of keys only what their first part tells.
type Axis struct {
	By    By
	Width int64 // of a slot: milliseconds, or units with ByInteger; 1 or more
	Lower bool  // ULIDs are in lower case
}

// By names what a slot is cut by.
type By string

// What slots can be cut by.
const (
	ByULID      By = "ulid"      // text; its time in milliseconds
	ByUUIDv7    By = "uuidv7"    // uuid or text; its time in milliseconds
	ByTimestamp By = "timestamp" // the first key column is a timestamp with time zone; the others break ties
	ByInteger   By = "integer"   // the first key column is an integer
)

// ErrOffAxis: a key has no place on the axis, like a text that is no ULID.
var ErrOffAxis = errors.New("migrate: key is not on the slots' axis")

// maxTime is the greatest time in a ULID or a UUIDv7.
const maxTime = 1<<48 - 1

// Index returns the index of the slot that k falls into.
func (a Axis) Index(k Key) (int64, error) {
	if len(k) == 0 {
		return 0, ErrOffAxis
	}
	at, err := a.position(k[0])
	if err != nil {
		return 0, fmt.Errorf("%w: %q: %v", ErrOffAxis, k[0], err)
	}
	return a.holding(at), nil
}

// place returns the index of the slot in whose range k sorts, and false where
// k does not tell: it is off the axis, or spelled otherwise than the bounds of
// slots are.
func (a Axis) place(k Key) (i int64, ok bool) {
	i, err := a.Index(k)
	switch {
	case err != nil:
		return 0, false
	case a.By == ByULID && !a.Lower:
		return i, k[0] == strings.ToUpper(k[0])
	case a.By == ByULID:
		return i, k[0] == strings.ToLower(k[0])
	case a.By == ByUUIDv7:
		return i, len(k[0]) == 36 && k[0] == strings.ToLower(k[0])
	}
	return i, true
}

// holding returns the index of the slot that a position falls into.
func (a Axis) holding(at int64) int64 {
	i := at / a.Width
	if at%a.Width < 0 {
		i--
	}
	return i
}

// Bound returns the least key of slot i. It has one part, whatever the key:
// every key whose first part is not less lies at or above it. It is nil for a
// slot beyond all keys, so that a range up to it is open.
func (a Axis) Bound(i int64) Key {
	at, ok := a.start(i)
	if !ok {
		return nil
	}
	switch a.By {
	case ByULID:
		id := ulid(uint64(min(max(at, 0), maxTime)))
		if a.Lower {
			id = strings.ToLower(id)
		}
		return Key{id}
	case ByUUIDv7:
		ms := min(max(at, 0), maxTime)
		return Key{fmt.Sprintf("%08x-%04x-0000-0000-000000000000", ms>>16, ms&0xffff)}
	case ByTimestamp:
		return Key{time.UnixMilli(at).UTC().Format(time.RFC3339Nano)}
	}
	return Key{strconv.FormatInt(at, 10)}
}

// start returns where slot i begins, and false if no key can lie there. The
// lowest slot of integers begins at the least of them.
func (a Axis) start(i int64) (int64, bool) {
	switch {
	case i > math.MaxInt64/a.Width:
		return 0, false
	case i < math.MinInt64/a.Width:
		return math.MinInt64, true
	}
	at := i * a.Width
	return at, a.By != ByULID && a.By != ByUUIDv7 || at <= maxTime
}

// Range returns the keys of s within span, whose lowest slot is open at its
// end: it holds what lies below the first slot, too.
func (a Axis) Range(s Slot, span Span) Range {
	r := Range{Lo: a.Bound(s.Index), Hi: a.Bound(s.Index + 1)}
	if s.Index <= span.Lo {
		r.Lo = nil
	}
	if s.Below != nil {
		r.Hi = s.Below
	}
	return r
}

// position returns where a key's first part lies.
func (a Axis) position(text string) (int64, error) {
	switch a.By {
	case ByULID:
		ms, err := ulidTime(text)
		return int64(ms), err
	case ByUUIDv7:
		digits := strings.ReplaceAll(text, "-", "")
		if len(digits) != 32 {
			return 0, errors.New("no UUID")
		}
		ms, err := strconv.ParseUint(digits[:12], 16, 64)
		return int64(ms), err
	case ByTimestamp:
		t, err := time.Parse(time.RFC3339Nano, text)
		return t.UnixMilli(), err
	}
	return strconv.ParseInt(text, 10, 64)
}

// Name returns the name of s: the beginning of its hour (20241020.02), of its
// minute (20241020.0215) where slots are not whole hours, or its first integer;
// and for a part, "+" and the key it lies below.
func (a Axis) Name(s Slot) string {
	at, _ := a.start(s.Index)
	name := strconv.FormatInt(at, 10)
	if a.By != ByInteger {
		name = time.UnixMilli(s.Index * a.Width).UTC().Format(a.layout())
	}
	if s.Below != nil {
		name += "+" + s.Below.String()
	}
	return name
}

// ParseName is the inverse of [Axis.Name].
func (a Axis) ParseName(name string) (Slot, error) {
	base, below, split := strings.Cut(name, "+")
	s := Slot{}
	if split {
		k, err := ParseKey(below)
		if err != nil {
			return s, err
		}
		s.Below = k
	}
	var at int64
	if a.By == ByInteger {
		n, err := strconv.ParseInt(base, 10, 64)
		if err != nil {
			return s, fmt.Errorf("migrate: slot %q: %w", name, err)
		}
		at = n
	} else {
		t, err := time.Parse(a.layout(), base)
		if err != nil {
			return s, fmt.Errorf("migrate: slot %q: give it like %s", name, a.Name(Slot{Index: 1_700_000_000_000 / a.Width}))
		}
		at = t.UnixMilli()
	}
	s.Index = a.holding(at)
	if begin, _ := a.start(s.Index); begin != at {
		return s, fmt.Errorf("migrate: slot %q: no slot begins there", name)
	}
	return s, nil
}

func (a Axis) layout() string {
	switch {
	case a.Width%time.Hour.Milliseconds() == 0:
		return "20060102.15"
	case a.Width%time.Minute.Milliseconds() == 0:
		return "20060102.1504"
	}
	return "20060102.150405.000"
}

// At returns the index of the slot an instant falls into.
func (a Axis) At(t time.Time) int64 {
	return int64(math.Floor(float64(t.UnixMilli()) / float64(a.Width)))
}

// upTo returns the index of the first slot that begins at or after an instant.
func (a Axis) upTo(t time.Time) int64 {
	i := a.At(t)
	if time.UnixMilli(i * a.Width).Before(t) {
		i++
	}
	return i
}

// crockford is the alphabet of ULIDs, in rising order.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// ulid returns the least ULID of a time in milliseconds.
func ulid(ms uint64) string {
	var b [26]byte
	for i := range b {
		b[i] = '0'
	}
	for i := 9; i >= 0; i-- {
		b[i] = crockford[ms&31]
		ms >>= 5
	}
	return string(b[:])
}

// ulidTime returns the time of a ULID in milliseconds.
func ulidTime(text string) (uint64, error) {
	if len(text) != 26 {
		return 0, errors.New("a ULID has 26 characters")
	}
	var ms uint64
	for i, c := range []byte(strings.ToUpper(text)) {
		digit := strings.IndexByte(crockford, c)
		if digit < 0 {
			return 0, fmt.Errorf("%q is no character of a ULID", text[i])
		}
		if i < 10 {
			ms = ms<<5 | uint64(digit)
		}
	}
	if ms > maxTime {
		return 0, errors.New("its time overflows")
	}
	return ms, nil
}
