package sequence

import (
	"fmt"
	"maps"
	"math"
	"unicode"
	"unicode/utf8"
)

// Limits of a definition, checked by [Spec.Define] and [Spec.Apply].
const (
	MaxNameBytes     = 255       // of a name, an owner, a label's key and its value
	MaxLabels        = 16        // labels a sequence may carry
	MaxBlockSize     = 1_000_000 // values in one block, unless a lease asks for more
	MaxCacheSize     = 1_000_000 // values a client may hold of one sequence
	MaxBufferSeconds = 3600
)

// Defaults of a definition's fields that PostgreSQL does not have.
const (
	DefaultBlockSize      = 1_000
	DefaultMaxBlock       = 1_000_000
	DefaultServerCacheMax = 2_000_000
	DefaultClientCacheMin = 50
	DefaultClientCacheMax = 500
	DefaultBufferSeconds  = 5
)

// A Definition says which values a sequence has and how they are cached. Its
// first six fields mean what they mean in PostgreSQL's CREATE SEQUENCE.
type Definition struct {
	Name      string
	Start     int64 // the first value, Min <= Start <= Max
	Increment int64 // not 0; negative descends
	Min       int64 // less than Max
	Max       int64
	Cycle     bool // after the last value begin again at Min (Max when descending), in a new epoch

	BlockSize      int64 // least values a server takes from the store at once
	MaxBlock       int64 // most values it takes at once to keep ahead
	ServerCacheMax int64 // most unserved values one server holds
	ClientCacheMin int64 // least values a client's cache holds when full
	ClientCacheMax int64 // most values it holds
	MinThreshold   int64 // a client refills at the latest when this few are left; 0: a fifth of its cache
	BufferSeconds  int64 // seconds of consumption a client keeps ahead

	Owner  string            // who to ask; free text
	Labels map[string]string // free; used to find sequences
}

// Descending reports whether values fall.
func (d Definition) Descending() bool { return d.Increment < 0 }

// A Spec is what a caller says of a definition: a nil field is not said. It
// creates a definition ([Spec.Define]) or changes one ([Spec.Apply]).
type Spec struct {
	Name      string
	Start     *int64
	Increment *int64
	Min       *int64
	Max       *int64
	Cycle     *bool

	BlockSize      *int64
	MaxBlock       *int64
	ServerCacheMax *int64
	ClientCacheMin *int64
	ClientCacheMax *int64
	MinThreshold   *int64
	BufferSeconds  *int64

	Owner  *string
	Labels map[string]string // nil: not said; empty: none
}

// Define returns the definition that s creates, with PostgreSQL's defaults for
// what it does not say: ascending from 1 to 2^63-1, descending from -1 to
// -2^63. It refuses, with an [Error] naming the field, what PostgreSQL refuses
// and what exceeds the limits of this package.
func (s Spec) Define() (Definition, error) {
	d := Definition{
		Name: s.Name, Increment: value(s.Increment, 1), Cycle: value(s.Cycle, false),
		BlockSize: DefaultBlockSize, MaxBlock: DefaultMaxBlock, ServerCacheMax: DefaultServerCacheMax,
		ClientCacheMin: DefaultClientCacheMin, ClientCacheMax: DefaultClientCacheMax, BufferSeconds: DefaultBufferSeconds,
	}
	d.Min, d.Max = 1, math.MaxInt64
	if d.Descending() {
		d.Min, d.Max = math.MinInt64, -1
	}
	d.Min, d.Max = value(s.Min, d.Min), value(s.Max, d.Max)
	d.Start = d.Min
	if d.Descending() {
		d.Start = d.Max
	}
	d.Start = value(s.Start, d.Start)
	s.tune(&d)
	return d, d.validate()
}

// Apply returns d with what s says changed. Unlike PostgreSQL's ALTER
// SEQUENCE it never moves the counter; see [Service.Alter].
func (s Spec) Apply(d Definition) (Definition, error) {
	d.Increment, d.Cycle = value(s.Increment, d.Increment), value(s.Cycle, d.Cycle)
	d.Min, d.Max, d.Start = value(s.Min, d.Min), value(s.Max, d.Max), value(s.Start, d.Start)
	s.tune(&d)
	return d, d.validate()
}

// tune applies the fields that do not decide which values there are. Raising
// one end of a pair takes the other along where that was left to its default.
func (s Spec) tune(d *Definition) {
	d.BlockSize, d.MaxBlock = value(s.BlockSize, d.BlockSize), value(s.MaxBlock, d.MaxBlock)
	if s.BlockSize == nil {
		d.BlockSize = min(d.BlockSize, d.MaxBlock)
	}
	if s.MaxBlock == nil {
		d.MaxBlock = max(d.MaxBlock, d.BlockSize)
	}
	d.ServerCacheMax = value(s.ServerCacheMax, d.ServerCacheMax)
	d.ClientCacheMin, d.ClientCacheMax = value(s.ClientCacheMin, d.ClientCacheMin), value(s.ClientCacheMax, d.ClientCacheMax)
	if s.ClientCacheMax == nil {
		d.ClientCacheMax = max(d.ClientCacheMax, d.ClientCacheMin)
	}
	if s.ClientCacheMin == nil {
		d.ClientCacheMin = min(d.ClientCacheMin, d.ClientCacheMax)
	}
	d.MinThreshold, d.BufferSeconds = value(s.MinThreshold, d.MinThreshold), value(s.BufferSeconds, d.BufferSeconds)
	d.Owner = value(s.Owner, d.Owner)
	if s.Labels != nil {
		d.Labels = maps.Clone(s.Labels)
	}
}

// value returns *p, or otherwise when p is nil.
func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func (d Definition) validate() error {
	if err := CheckName(d.Name); err != nil {
		return err
	}
	if err := d.validateRange(); err != nil {
		return err
	}
	if err := d.validateTuning(); err != nil {
		return err
	}
	return d.validateText()
}

// CheckName returns an [Error] unless name can be a sequence's name: 1 to 255
// bytes of UTF-8 without control characters.
func CheckName(name string) error {
	return checkText("name", name, 1)
}

func checkText(field, s string, least int) error {
	switch {
	case len(s) < least:
		return invalid(field, "give a name of 1 to 255 bytes", "is empty")
	case len(s) > MaxNameBytes:
		return invalid(field, "shorten it to 255 bytes", "has %d bytes", len(s))
	case !utf8.ValidString(s):
		return invalid(field, "encode it as UTF-8", "is not valid UTF-8")
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return invalid(field, "remove it", "contains the control character %U", r)
		}
	}
	return nil
}

func (d Definition) validateRange() error {
	switch {
	case d.Increment == 0:
		return invalid("increment", "use a positive step to ascend, a negative one to descend", "must not be 0")
	case d.Min >= d.Max:
		return invalid("min", "lower min or raise max", "%d must be less than max %d", d.Min, d.Max)
	case d.Start < d.Min:
		return invalid("start", "raise start or lower min", "%d is less than min %d", d.Start, d.Min)
	case d.Start > d.Max:
		return invalid("start", "lower start or raise max", "%d is greater than max %d", d.Start, d.Max)
	}
	return nil
}

func (d Definition) validateTuning() error {
	for _, f := range []struct {
		field            string
		value, low, high int64
	}{
		{"block_size", d.BlockSize, 1, MaxBlockSize},
		{"max_block", d.MaxBlock, d.BlockSize, MaxBlockSize},
		{"server_cache_max", d.ServerCacheMax, d.BlockSize, math.MaxUint32},
		{"client_cache_min", d.ClientCacheMin, 1, MaxCacheSize},
		{"client_cache_max", d.ClientCacheMax, d.ClientCacheMin, MaxCacheSize},
		{"min_threshold", d.MinThreshold, 0, d.ClientCacheMax},
		{"buffer_seconds", d.BufferSeconds, 1, MaxBufferSeconds},
	} {
		if f.value < f.low || f.value > f.high {
			return invalid(f.field, fmt.Sprintf("choose a value from %d to %d", f.low, f.high), "%d is out of range", f.value)
		}
	}
	return nil
}

func (d Definition) validateText() error {
	if err := checkText("owner", d.Owner, 0); err != nil {
		return err
	}
	if len(d.Labels) > MaxLabels {
		return invalid("labels", "remove some", "%d labels, at most %d are allowed", len(d.Labels), MaxLabels)
	}
	for k, v := range d.Labels {
		if err := checkText("labels", k, 1); err != nil {
			return err
		}
		if err := checkText("labels", v, 0); err != nil {
			return err
		}
	}
	return nil
}
