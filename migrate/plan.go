package migrate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
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

	Text string `yaml:"-"` // the file, before ${NAME} was replaced
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
	if err != nil || v < 0 {
		return &PlanError{Line: n.Line, Message: fmt.Sprintf("%q is no duration", n.Value), Remedy: "write it like 90s, 10m or 24h"}
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
	if n.Decode(&w.Keys) == nil && w.Keys > 0 {
		return nil
	}
	var d Duration
	if err := d.UnmarshalYAML(n); err != nil || time.Duration(d) < time.Millisecond {
		return &PlanError{Line: n.Line, Field: "slots.width", Message: fmt.Sprintf("%q is no width", n.Value), Remedy: "write a duration like 1h, or a number of keys with by: integer"}
	}
	w.Time, w.Keys = time.Duration(d), 0
	return nil
}

// ParsePlan reads a plan from YAML. ${NAME} in a value is replaced by what env
// returns for NAME; one that is not set is an error, and so is an unknown key.
func ParsePlan(text []byte, env func(string) (string, bool)) (Plan, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return Plan{}, yamlError(err)
	}
	if err := expand(&root, env); err != nil {
		return Plan{}, err
	}
	if err := checkKeys(text); err != nil {
		return Plan{}, err
	}
	p := defaults()
	if err := root.Decode(&p); err != nil {
		return Plan{}, yamlError(err)
	}
	p.Text = string(text)
	p.complete()
	return p, p.validate()
}

// checkKeys returns the first key of text that is none of a plan. Types are
// not looked at: a value may be a variable still.
func checkKeys(text []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	err := dec.Decode(new(Plan))
	if all, ok := errors.AsType[*yaml.TypeError](err); ok {
		for _, e := range all.Errors {
			if unknownKey.MatchString(e) {
				return yamlError(errors.New(e))
			}
		}
	}
	return nil
}

var (
	yamlLine   = regexp.MustCompile(`line (\d+): (.*)`)
	unknownKey = regexp.MustCompile(`field (\S+) not found in type`)
)

// yamlError returns what the YAML parser says in one line.
func yamlError(err error) error {
	if e, ok := errors.AsType[*PlanError](err); ok {
		return e
	}
	e := &PlanError{Message: err.Error()}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		fmt.Sscan(m[1], &e.Line)
		e.Message = m[2]
	}
	if m := unknownKey.FindStringSubmatch(e.Message); m != nil {
		e.Field, e.Message, e.Remedy = m[1], "is not a key of a plan", "correct or remove it"
	}
	return e
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${NAME} in every scalar value below n.
func expand(n *yaml.Node, env func(string) (string, bool)) error {
	if n.Kind == yaml.ScalarNode {
		for _, m := range variable.FindAllStringSubmatch(n.Value, -1) {
			v, ok := env(m[1])
			if !ok {
				return &PlanError{Line: n.Line, Message: "the environment variable " + m[1] + " is not set", Remedy: "set it, or write the value"}
			}
			n.Value = strings.ReplaceAll(n.Value, m[0], v)
			n.Tag = "" // the value decides
			if n.Style == 0 && n.Value == "" {
				n.Style = yaml.DoubleQuotedStyle
			}
		}
	}
	for _, c := range n.Content {
		if err := expand(c, env); err != nil {
			return err
		}
	}
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
	if p.Slots.By == ByInteger && p.Slots.Width.Keys == 0 {
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

// Oldest reports whether the oldest slot comes first.
func (p Plan) Oldest() bool { return p.Slots.Order == "oldest-first" }

// Hash identifies the plan: SHA-256 of its text. Values from the environment
// do not count, so that no secret can be guessed from it.
func (p Plan) Hash() string {
	sum := sha256.Sum256([]byte(p.Text))
	return hex.EncodeToString(sum[:8])
}

var planName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// validate returns the first thing that is wrong with p.
func (p Plan) validate() error {
	for _, c := range []struct {
		wrong                  bool
		field, message, remedy string
	}{
		{!planName.MatchString(p.Name), "name", fmt.Sprintf("%q is no name", p.Name), "use 1 to 63 letters, digits, '.', '_' and '-'"},
		{p.Source.Kind != "postgres", "source.kind", fmt.Sprintf("%q is not known", p.Source.Kind), "use postgres"},
		{p.Source.Table == "", "source.table", "is missing", "name the table to read"},
		{len(p.Source.Key) == 0, "source.key", "is missing", "name the columns of the table's key"},
		{p.Sink.Kind != "dynamodb" && p.Sink.Kind != "discard", "sink.kind", fmt.Sprintf("%q is not known", p.Sink.Kind), "use dynamodb, or discard to measure"},
		{p.Sink.Kind == "dynamodb" && p.Sink.Table == "", "sink.table", "is missing", "name the table to write"},
		{p.Sink.Kind == "dynamodb" && p.Sink.Key.Partition == "", "sink.key", "has no partition", "name the attribute of the table's partition key"},
		{p.Sink.BatchRows < 1 || p.Sink.BatchRows > 25, "sink.batch_rows", fmt.Sprintf("%d is out of range", p.Sink.BatchRows), "use 1 to 25"},
		{p.Slots.By != ByULID && p.Slots.By != ByUUIDv7 && p.Slots.By != ByTimestamp && p.Slots.By != ByInteger, "slots.by", fmt.Sprintf("%q is not known", p.Slots.By), "use ulid, uuidv7, timestamp or integer"},
		{p.Slots.By == ByInteger && p.Slots.Width.Keys == 0 || p.Slots.By != ByInteger && p.Slots.Width.Time == 0, "slots.width", "does not fit slots.by", "give a number of keys with integer, a duration otherwise"},
		{p.Slots.Case != "upper" && p.Slots.Case != "lower", "slots.case", fmt.Sprintf("%q is not known", p.Slots.Case), "use upper or lower"},
		{p.Slots.Order != "newest-first" && p.Slots.Order != "oldest-first", "slots.order", fmt.Sprintf("%q is not known", p.Slots.Order), "use newest-first or oldest-first"},
		{p.Slots.From != nil && p.Slots.To != nil && !p.Slots.From.Before(*p.Slots.To), "slots.to", "does not lie after slots.from", "exchange them"},
		{p.Slots.By == ByInteger && (p.Slots.From != nil || p.Slots.To != nil), "slots.from", "is a time", "leave from and to out with by: integer"},
		{p.Write.Mode != Guarded && p.Write.Mode != Absent && p.Write.Mode != Overwrite, "write.mode", fmt.Sprintf("%q is not known", p.Write.Mode), "say guarded, absent or overwrite: there is no default"},
		{p.Write.Mode == Guarded && p.Write.Version == "", "write.version", "is missing", "guarded needs a column that grows with each change of a row"},
		{p.Write.Mode != Guarded && p.Write.Deletes != "none", "write.deletes", "is not none", "only guarded keeps deleted rows deleted; say deletes: none if rows are never deleted"},
		{p.State.Kind != "redis" && p.State.Kind != "file", "state.kind", fmt.Sprintf("%q is not known", p.State.Kind), "use redis or file"},
		{p.State.LockTTL < Duration(time.Second), "state.lock_ttl", "is under a second", "use 15s to 30s"},
		{p.State.KeeperInterval < Duration(100*time.Millisecond), "state.keeper_interval", "is under 100ms", "use a few seconds"},
		{p.Workers < 1 || p.Workers > 1024, "workers", fmt.Sprintf("%d is out of range", p.Workers), "use 1 to 1024"},
		{p.PageRows < 1 || p.PageRows > 100_000, "page_rows", fmt.Sprintf("%d is out of range", p.PageRows), "use 1 to 100000"},
		{p.Limits.ReadRows < 0 || p.Limits.WriteUnits < 0, "limits", "is negative", "use 0 for no limit"},
	} {
		if c.wrong {
			return &PlanError{Field: c.field, Message: c.message, Remedy: c.remedy}
		}
	}
	for column, c := range p.Columns {
		if c.Encode != "" && c.Encode != "map" && c.Encode != "string" {
			return &PlanError{Field: "columns." + column + ".encode", Message: fmt.Sprintf("%q is not known", c.Encode), Remedy: "use map or string"}
		}
	}
	return nil
}
