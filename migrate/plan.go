package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A Plan says what is migrated, whence, where to and how. It is the same for
// all pods; [ParsePlan] reads it.
type Plan struct {
	Name       string                `yaml:"name"`
	Source     SourcePlan            `yaml:"source"`
	Sink       SinkPlan              `yaml:"sink"`
	Columns    map[string]ColumnPlan `yaml:"columns"` // by column; empty: every column under its own name
	Slots      SlotPlan              `yaml:"slots"`
	Write      WritePlan             `yaml:"write"`
	State      StatePlan             `yaml:"state"`
	Retry      RetryPlan             `yaml:"retry"`
	Workers    int                   `yaml:"workers"`
	PageRows   int                   `yaml:"page_rows"`
	Limits     LimitPlan             `yaml:"limits"`
	Quarantine QuarantinePlan        `yaml:"quarantine"`
	Verify     VerifyPlan            `yaml:"verify"`

	Text string `yaml:"-"` // the file, before ${NAME} was replaced

	lines map[string]int // of the keys, like "source.key"; of the whole: ""
}

// A SourcePlan names the table to read.
type SourcePlan struct {
	Kind  string   `yaml:"kind"` // postgres
	DSN   string   `yaml:"dsn"`
	Table string   `yaml:"table"` // "schema.table" or "table"
	Key   []string `yaml:"key"`   // its key columns, in the order of an index
}

// A SinkPlan names the table to write.
type SinkPlan struct {
	Kind      string      `yaml:"kind"` // dynamodb, or discard
	Table     string      `yaml:"table"`
	Region    string      `yaml:"region"`
	Endpoint  string      `yaml:"endpoint"`
	Key       SinkKeyPlan `yaml:"key"`
	Create    bool        `yaml:"create"`
	BatchRows int         `yaml:"batch_rows"` // 1 to 25
}

// A SinkKeyPlan names the attributes of the sink's key.
type SinkKeyPlan struct {
	Partition string `yaml:"partition"`
	Sort      string `yaml:"sort"` // "": none
}

// A ColumnPlan says how a column is stored.
type ColumnPlan struct {
	As     string `yaml:"as"`     // attribute; "": the column's name
	Encode string `yaml:"encode"` // of JSON: "map" or "string"
}

// A SlotPlan says how the key is cut into slots.
type SlotPlan struct {
	By    By         `yaml:"by"`
	Case  string     `yaml:"case"` // of the letters of ULIDs: upper or lower
	Width Width      `yaml:"width"`
	Order string     `yaml:"order"` // newest-first or oldest-first
	Lag   Duration   `yaml:"lag"`   // a slot is read once its end is this much in the database's past
	Sweep Duration   `yaml:"sweep"` // how much of the newest is read once more
	From  *time.Time `yaml:"from"`
	To    *time.Time `yaml:"to"`
}

// A WritePlan says what a write may replace.
type WritePlan struct {
	Mode    Mode   `yaml:"mode"`    // no default
	Version string `yaml:"version"` // column that grows with each change of a row
	Deletes string `yaml:"deletes"` // "none": rows are never deleted
}

// A StatePlan says where progress and locks are kept.
type StatePlan struct {
	Kind           string   `yaml:"kind"` // redis or file
	URL            string   `yaml:"url"`
	Prefix         string   `yaml:"prefix"`
	Path           string   `yaml:"path"`
	LockTTL        Duration `yaml:"lock_ttl"`
	ProgressTTL    Duration `yaml:"progress_ttl"`
	KeeperInterval Duration `yaml:"keeper_interval"`
	StallTimeout   Duration `yaml:"stall_timeout"`
}

// A RetryPlan says how failures are tried again.
type RetryPlan struct {
	Delays  []Duration `yaml:"delays"`  // between tries of one call
	Restart Duration   `yaml:"restart"` // before a slot is begun again from its saved progress
}

// A LimitPlan protects source and sink. 0 means no limit.
type LimitPlan struct {
	ReadRows   float64 `yaml:"read_rows_per_second"`   // over all pods
	WriteUnits float64 `yaml:"write_units_per_second"` // over all pods
	// ReplicaLag pauses reading while a replica of the source is further behind.
	ReplicaLag Duration `yaml:"replica_lag"`
}

// A QuarantinePlan says where rows that cannot be stored are listed.
type QuarantinePlan struct {
	Path string `yaml:"path"`
}

// A Duration is a time.Duration that reads like "90s" in YAML.
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		return err
	}
	if v < 0 {
		return errors.New("a duration below zero")
	}
	*d = Duration(v)
	return nil
}

// A Width is the width of a slot: a duration, or a number of keys where slots
// are cut by an integer.
type Width struct {
	Time time.Duration
	Keys int64
}

// UnmarshalYAML reads a width.
func (w *Width) UnmarshalYAML(n *yaml.Node) error {
	var keys int64
	if n.Decode(&keys) == nil && keys > 0 {
		*w = Width{Keys: keys}
		return nil
	}
	var d Duration
	if err := d.UnmarshalYAML(n); err != nil {
		return err
	}
	if time.Duration(d) < time.Millisecond {
		return errors.New("a width under a millisecond")
	}
	*w = Width{Time: time.Duration(d)}
	return nil
}

func defaults() Plan {
	second := Duration(time.Second)
	return Plan{
		Sink:     SinkPlan{BatchRows: 25},
		Slots:    SlotPlan{By: ByULID, Case: "upper", Width: Width{Time: time.Hour}, Order: "newest-first", Lag: 60 * second, Sweep: 24 * 3600 * second},
		State:    StatePlan{Kind: "redis", URL: "redis://127.0.0.1:6379/0", Prefix: "mgre:", LockTTL: 20 * second, ProgressTTL: 168 * 3600 * second, KeeperInterval: 5 * second, StallTimeout: 600 * second},
		Retry:    RetryPlan{Delays: []Duration{second / 10, second / 5, second / 2}, Restart: 3 * second},
		Workers:  8,
		PageRows: 1000,
	}
}

// complete fills what depends on other values.
func (p *Plan) complete() {
	p.Quarantine.Path = cmp.Or(p.Quarantine.Path, p.Name+".quarantine.ndjson")
	p.State.Path = cmp.Or(p.State.Path, p.Name+".state")
	if _, given := p.lines["slots.width"]; p.Slots.By == ByInteger && !given {
		p.Slots.Width = Width{Keys: 100_000}
	}
}

// Axis returns how keys are cut into slots.
func (p Plan) Axis() Axis {
	w := p.Slots.Width.Keys
	if p.Slots.By != ByInteger {
		w = p.Slots.Width.Time.Milliseconds()
	}
	return Axis{By: p.Slots.By, Width: w, Lower: p.Slots.By == ByULID && p.Slots.Case == "lower"}
}

// Span returns the slots of a table: from the one of the least key, or of from,
// to the one of the greatest key, or to the first that ends at or after to. A
// from leaves no row out: the lowest slot holds what lies below it, too, and
// there is one if there is a row that it may hold. Without a to, none lies beyond the one of now, by the source's clock: keys of
// the future come from wrong clocks, and nobody waits for them. An empty table
// has none. A key that is not on the axis is an [ErrOffAxis].
func (p Plan) Span(e Extent, now time.Time) (Span, error) {
	if e.Min == nil {
		return Span{}, nil
	}
	a := p.Axis()
	lo, err := a.Index(e.Min)
	if err != nil {
		return Span{}, fmt.Errorf("the least key: %w", err)
	}
	hi, err := a.Index(e.Max)
	if err != nil {
		return Span{}, fmt.Errorf("the greatest key: %w", err)
	}
	s := Span{lo, hi + min(1, math.MaxInt64-hi)}
	switch {
	case p.Slots.To != nil:
		s.Hi = a.upTo(*p.Slots.To)
	case a.By != ByInteger:
		s.Hi = min(s.Hi, a.At(now)+1)
	}
	if p.Slots.From != nil {
		s.Lo = min(a.At(*p.Slots.From), s.Hi-1)
	}
	s.Hi = max(s.Lo, s.Hi)
	if hi == math.MaxInt64 || s.Hi-s.Lo < 0 { // it overflows
		return Span{}, &PlanError{Line: p.Line("slots.width"), Field: "slots.width", Message: "makes more slots than can be counted", Remedy: "use a greater one"}
	}
	return s, nil
}

// Line returns the line of the file that a key like "source.key" stands in, or
// the block that it belongs in; 0 if p was not parsed.
func (p Plan) Line(field string) int {
	for {
		if line, ok := p.lines[field]; ok || field == "" {
			return line
		}
		field = field[:max(0, strings.LastIndexByte(field, '.'))]
	}
}

// Oldest reports whether the oldest slot comes first.
func (p Plan) Oldest() bool { return p.Slots.Order == "oldest-first" }
