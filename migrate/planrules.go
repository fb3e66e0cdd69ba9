package migrate

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A rule is something that a plan must not be.
type rule struct {
	broken  bool
	field   string
	message string // %s stands for the value as it is written
	remedy  string
}

// judge returns the first rule that p breaks.
func (f planText) judge(p Plan) error {
	if written, given := f.values["source.dsn"]; given && p.Source.DSN == "" {
		return &PlanError{Line: p.Line("source.dsn"), Field: "source.dsn", Message: fmt.Sprintf("%q is empty", written), Remedy: "set it, or leave the key out to use PGHOST and the like"}
	}
	for _, field := range []string{"source.dsn", "state.url"} {
		if holdsPassword(f.values[field]) {
			return &PlanError{Line: p.Line(field), Field: field, Message: "holds a password, which would be kept with the plan in the state", Remedy: "put it into the environment, and here ${NAME} in its place"}
		}
	}
	for _, rules := range [][]rule{p.endRules(), p.slotRules(), p.writeRules(), p.podRules()} {
		for _, r := range rules {
			if r.broken {
				return f.breach(p, r)
			}
		}
	}
	return nil
}

// passwords finds those of a URL, and of PostgreSQL's other form.
var passwords = regexp.MustCompile(`(?i)://[^/@\s]*:([^@\s]+)@|password\s*=\s*([^\s&]+)`)

// holdsPassword reports whether a value, as it is written in the plan, has a
// password in it and not the name of one.
func holdsPassword(written string) bool {
	for _, m := range passwords.FindAllStringSubmatch(written, -1) {
		if password := m[1] + m[2]; variable.FindString(password) != password {
			return true
		}
	}
	return false
}

// breach returns a broken rule as an error.
func (f planText) breach(p Plan, r rule) *PlanError {
	e := &PlanError{Line: p.Line(r.field), Field: r.field, Message: r.message, Remedy: r.remedy}
	if !strings.Contains(r.message, "%") {
		return e
	}
	value, given := f.values[r.field]
	e.Message = "is missing"
	if given {
		e.Message = fmt.Sprintf(r.message, quote(value, r.field))
	}
	return e
}

var planName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// endRules are those of source and sink.
func (p Plan) endRules() []rule {
	s, k := p.Source, p.Sink
	rules := []rule{
		{!planName.MatchString(p.Name), "name", "%s is no name", "use 1 to 63 letters, digits, '.', '_' and '-'"},
		{s.Kind != "postgres", "source.kind", "%s is not known", "use postgres"},
		{s.Table == "", "source.table", "is missing", "name the table to read"},
		{len(s.Key) == 0, "source.key", "is missing", "name the columns of the table's key, like key: [id]"},
		{len(slices.Compact(slices.Sorted(slices.Values(s.Key)))) < len(s.Key), "source.key", "names a column twice", "name each column of the table's key once"},
		{k.Kind != "dynamodb" && k.Kind != "discard", "sink.kind", "%s is not known", "use dynamodb, or discard to measure"},
		{k.Kind == "dynamodb" && k.Table == "", "sink.table", "is missing", "name the table to write"},
		{k.Kind == "dynamodb" && k.Key.Partition == "", "sink.key.partition", "is missing", "name the attribute of the table's partition key"},
		{k.Endpoint != "" && !isURL(k.Endpoint), "sink.endpoint", "%s is no URL", "write it like http://127.0.0.1:8000, or leave it out for AWS"},
		{k.BatchRows < 1 || k.BatchRows > 25, "sink.batch_rows", "%s is out of range", "use 1 to 25"},
	}
	for _, name := range slices.Sorted(maps.Keys(p.Columns)) {
		encode := p.Columns[name].Encode
		rules = append(rules, rule{encode != "" && encode != "map" && encode != "string", "columns." + name + ".encode", "%s is not known", "use map or string"})
	}
	return rules
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func (p Plan) slotRules() []rule {
	s := p.Slots
	number := s.By == ByInteger
	return []rule{
		{s.By != ByULID && s.By != ByUUIDv7 && s.By != ByTimestamp && !number, "slots.by", "%s is not known", "use ulid, uuidv7, timestamp or integer"},
		{number && s.Width.Keys == 0, "slots.width", "is a duration, and slots.by is integer", "give a number of keys, like width: 100000"},
		{!number && s.Width.Time == 0, "slots.width", "is a number, and slots.by is not integer", "give a duration, like width: 1h"},
		{s.Case != "upper" && s.Case != "lower", "slots.case", "%s is not known", "use upper or lower"},
		{s.Order != "newest-first" && s.Order != "oldest-first", "slots.order", "%s is not known", "use newest-first or oldest-first"},
		{number && s.From != nil, "slots.from", "is a time, and slots.by is integer", "leave it out"},
		{number && s.To != nil, "slots.to", "is a time, and slots.by is integer", "leave it out"},
		{s.From != nil && s.To != nil && !s.From.Before(*s.To), "slots.to", "does not lie after slots.from", "exchange them"},
	}
}

func (p Plan) writeRules() []rule {
	w := p.Write
	return []rule{
		{w.Mode != Guarded && w.Mode != Absent && w.Mode != Overwrite, "write.mode", "%s is not known", "say guarded, absent or overwrite: there is no default"},
		{w.Mode == Guarded && w.Version == "", "write.version", "is missing", "guarded needs a column that grows with each change of a row"},
		{w.Deletes != "" && w.Deletes != "none", "write.deletes", "%s is not known", "say none if rows are never deleted; otherwise leave it out"},
		{w.Mode != Guarded && w.Deletes != "none", "write.deletes", "is missing", "only guarded keeps deleted rows deleted; say deletes: none if rows are never deleted"},
	}
}

// podRules are those of the state and of how pods work.
func (p Plan) podRules() []rule {
	s := p.State
	return []rule{
		{s.Kind != "redis" && s.Kind != "file", "state.kind", "%s is not known", "use redis or file"},
		{s.LockTTL < Duration(time.Second), "state.lock_ttl", "%s is under a second", "use 15s to 30s"},
		{s.LockTTL > Duration(time.Hour), "state.lock_ttl", "%s is over an hour: for so long nobody goes on where a pod was killed", "use 15s to 30s"},
		{s.KeeperInterval < Duration(100*time.Millisecond), "state.keeper_interval", "%s is under 100ms", "use a few seconds"},
		{s.KeeperInterval > Duration(time.Hour), "state.keeper_interval", "%s is over an hour: for so long nothing moves on", "use a few seconds"},
		{s.ProgressTTL < s.LockTTL, "state.progress_ttl", "%s is under state.lock_ttl: what a pod saved would be forgotten before another goes on", "use days"},
		{s.StallTimeout < s.LockTTL, "state.stall_timeout", "%s is under state.lock_ttl: slots would be given up all the time", "use minutes"},
		{p.Workers < 1 || p.Workers > 1024, "workers", "%s is out of range", "use 1 to 1024"},
		{p.PageRows < 1 || p.PageRows > 100_000, "page_rows", "%s is out of range", "use 1 to 100000"},
		{p.Limits.ReadRows < 0, "limits.read_rows_per_second", "%s is negative", "use 0 for no limit"},
		{p.Limits.WriteUnits < 0, "limits.write_units_per_second", "%s is negative", "use 0 for no limit"},
		{noLimit(p.Limits.ReadRows), "limits.read_rows_per_second", "%s is no limit", "use 0 for none, otherwise 0.001 to 1000000000"},
		{noLimit(p.Limits.WriteUnits), "limits.write_units_per_second", "%s is no limit", "use 0 for none, otherwise 0.001 to 1000000000"},
		{p.Limits.ReplicaLag < 0, "limits.replica_lag", "%s is negative", "use 0s for no limit"},
	}
}

// noLimit reports whether a number, which may be none, is too small or too
// large to be meant.
func noLimit(perSecond float64) bool {
	return perSecond != 0 && !(0.001 <= perSecond && perSecond <= 1e9)
}
