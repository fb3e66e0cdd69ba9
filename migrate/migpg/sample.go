package migpg

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/migrate"
)

// sampleRows is how many keys are looked at on either end and between.
const sampleRows = 1000

// checkSample looks for keys that lie in no slot or in a strange one.
func (s *Source) checkSample(ctx context.Context, extent migrate.Extent) ([]migrate.Finding, error) {
	var keys []migrate.Key
	for _, q := range s.sampling(extent) {
		rows, err := s.rows(ctx, s.pool, q, s.schema.keyColumns())
		if err != nil {
			return nil, failed("sample keys", err)
		}
		some, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (migrate.Key, error) { return s.schema.decodeKey(row.RawValues()) })
		if err != nil {
			return nil, failed("sample keys", err)
		}
		keys = append(keys, some...)
	}
	now, err := s.Now(ctx)
	return judge(s.plan.Axis(), keys, now), err
}

// sampling returns queries for keys of both ends and, but for a table so small
// that they are all of it, of blocks chosen at random.
func (s *Source) sampling(extent migrate.Extent) []query {
	columns := s.schema.keyColumns()
	ends := []query{
		s.query.walk(columns, migrate.Range{}, nil, true, 0, sampleRows),
		s.query.walk(columns, migrate.Range{}, nil, false, 0, sampleRows),
	}
	if s.schema.kind == "m" || extent.Rows < sampleRows {
		return ends
	}
	percent := min(100, 100*2*sampleRows/float64(extent.Rows))
	var q query
	q.sql = "select " + list(columns, "t.") + " from " + s.schema.name() + " t tablesample system (" + q.param(percent, "float4") + ") limit " + q.param(sampleRows, "int8")
	return append(ends, q)
}

// judge returns what is wrong with keys at a time.
func judge(axis migrate.Axis, keys []migrate.Key, now time.Time) []migrate.Finding {
	found := judgeSpelling(axis, keys)
	if axis.By == migrate.ByInteger {
		return found
	}
	after, before := axis.At(now.Add(time.Hour)), axis.At(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	found = append(found, about(keys, migrate.Warning, "key %s lies in the future", "rows above slots.to are the double-writer's: verified, not copied", func(k migrate.Key) bool {
		i, err := axis.Index(k)
		return err == nil && i > after
	})...)
	return append(found, about(keys, migrate.Warning, "key %s lies before the year 2000", "it is copied with the bottom slot; set slots.from to spare the walk there", func(k migrate.Key) bool {
		i, err := axis.Index(k)
		return err == nil && i < before
	})...)
}

// judgeSpelling returns which keys have no place on the axis, or another than
// their time.
func judgeSpelling(axis migrate.Axis, keys []migrate.Key) []migrate.Finding {
	found := judgePlaces(axis, keys)
	other := axis
	other.Lower = !axis.Lower
	if axis.By == migrate.ByULID && amiss(axis, keys) != nil && amiss(other, keys) == nil {
		letters := map[bool]string{false: "upper", true: "lower"}[other.Lower]
		return append(found, migrate.Finding{Severity: migrate.Refusal, Field: "slots.case", Message: fmt.Sprintf("the ULIDs are in %s case, like %s", letters, amiss(axis, keys)),
			Remedy: "write case: " + letters + " under slots"})
	}
	return append(found, about(keys, migrate.Refusal, "key %s has letters of the other case: it sorts away from its time", "mend such rows; all must be spelled alike", func(k migrate.Key) bool {
		return misspelled(axis, k)
	})...)
}

// judgePlaces refuses keys that have no place on the axis: where they are least
// or greatest, no slot would hold them. How many there are of those looked at
// tells whether the rows are wrong or slots.by is.
func judgePlaces(axis migrate.Axis, keys []migrate.Key) []migrate.Finding {
	seen, lost := map[string]bool{}, map[string]bool{}
	var first migrate.Key
	for _, k := range keys {
		seen[k.String()] = true
		if _, err := axis.Index(k); err != nil {
			lost[k.String()] = true
			if first == nil {
				first = k
			}
		}
	}
	if first == nil {
		return nil
	}
	_, err := axis.Index(first)
	why := strings.TrimPrefix(err.Error(), fmt.Sprintf("%s: %q: ", migrate.ErrOffAxis, first[0]))
	return []migrate.Finding{{Severity: migrate.Refusal, Field: "source.key",
		Message: fmt.Sprintf("key %s is not what slots.by says (%s: %s), nor are %d of %d keys looked at in all", first, axis.By, why, len(lost), len(seen)),
		Remedy:  "mend or remove such rows, or choose another slots.by"}}
}

// about returns a finding about the first key that f takes, none if there is none.
func about(keys []migrate.Key, severity migrate.Severity, message, remedy string, f func(migrate.Key) bool) []migrate.Finding {
	i := slices.IndexFunc(keys, f)
	if i < 0 {
		return nil
	}
	return []migrate.Finding{{Severity: severity, Field: "source.key", Message: fmt.Sprintf(message, keys[i]), Remedy: remedy}}
}

// amiss returns the first key that the axis spells otherwise, nil if there is
// none.
func amiss(axis migrate.Axis, keys []migrate.Key) migrate.Key {
	if i := slices.IndexFunc(keys, func(k migrate.Key) bool { return misspelled(axis, k) }); i >= 0 {
		return keys[i]
	}
	return nil
}

// misspelled reports whether a key on the axis is spelled otherwise than its
// slots' bounds.
func misspelled(axis migrate.Axis, k migrate.Key) bool {
	_, err := axis.Index(k)
	return err == nil && k[0] != spelled(axis, k[0])
}

// spelled returns a key's first part as it has to be.
func spelled(axis migrate.Axis, s string) string {
	switch {
	case axis.By == migrate.ByULID && !axis.Lower:
		return strings.ToUpper(s)
	case axis.By == migrate.ByULID:
		return strings.ToLower(s)
	case axis.By == migrate.ByUUIDv7 && len(s) == 32:
		return "" // without hyphens it sorts elsewhere
	case axis.By == migrate.ByUUIDv7:
		return strings.ToLower(s)
	}
	return s
}
