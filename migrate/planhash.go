package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Hash identifies the plan: SHA-256 of its text and of the values that say what
// is copied, whence, where to and how. Of those that hold secrets or say where
// the state is, like the DSN, what the environment has does not count: no secret
// can be guessed from it, and pods may reach the same by other addresses.
func (p Plan) Hash() string {
	sum := sha256.Sum256([]byte(p.Text + "\x00" + p.values()))
	return hex.EncodeToString(sum[:8])
}

// record returns the plan as the state keeps it before anything is surveyed.
func (p Plan) record() PlanRecord {
	return PlanRecord{Name: p.Name, Hash: p.Hash(), Text: p.Text, Values: p.values()}
}

// values returns the values in which all pods must agree, a line each.
func (p Plan) values() string {
	s, k, c, w := p.Source, p.Sink, p.Slots, p.Write
	lines := []string{
		"name: " + p.Name, "source.table: " + s.Table, "source.key: " + strings.Join(s.Key, ", "),
		"sink.kind: " + k.Kind, "sink.table: " + k.Table, "sink.region: " + k.Region, "sink.endpoint: " + withoutSecret(k.Endpoint),
		"sink.key.partition: " + k.Key.Partition, "sink.key.sort: " + k.Key.Sort,
		"slots.by: " + string(c.By), "slots.case: " + c.Case, fmt.Sprintf("slots.width: %d", p.Axis().Width), "slots.order: " + c.Order,
		"slots.lag: " + time.Duration(c.Lag).String(), "slots.sweep: " + time.Duration(c.Sweep).String(),
		"slots.from: " + instantText(c.From), "slots.to: " + instantText(c.To),
		"write.mode: " + string(w.Mode), "write.version: " + w.Version, "write.deletes: " + w.Deletes,
	}
	for _, name := range slices.Sorted(maps.Keys(p.Columns)) {
		lines = append(lines, fmt.Sprintf("columns.%s: as %q, encode %q", name, p.Columns[name].As, p.Columns[name].Encode))
	}
	return strings.Join(lines, "\n")
}

// withoutSecret returns a URL without what may be a password.
func withoutSecret(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func instantText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
