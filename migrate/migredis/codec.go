package migredis

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tallystick/tallystick/migrate"
)

// states is the progress of a slot as Redis keeps it.
type states struct {
	Status string         `json:"status"`
	Last   *string        `json:"last_id,omitempty"`
	Lo     *string        `json:"lo,omitempty"`
	Counts migrate.Counts `json:"counts"`
	Digest string         `json:"digest"`
}

func encodeProgress(p migrate.Progress, status migrate.Status) (string, error) {
	b, err := json.Marshal(states{string(status), keyText(p.Last), keyText(p.Lo), p.Counts, p.Digest.String()})
	return string(b), err
}

// decodeProgress returns the progress of text, which may be "", of a slot that
// ends at lo.
func decodeProgress(text string, lo *string) (p migrate.Progress, err error) {
	if p.Lo, err = parseKey(lo); err != nil || text == "" {
		return p, err
	}
	var s states
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return p, err
	}
	if p.Last, err = parseKey(s.Last); err != nil {
		return p, err
	}
	p.Counts = s.Counts
	p.Digest, err = parseDigest(s.Digest)
	return p, err
}

// keyText returns a key as text, and nil for none.
func keyText(k migrate.Key) *string {
	if k == nil {
		return nil
	}
	s := k.String()
	return &s
}

func parseKey(s *string) (migrate.Key, error) {
	if s == nil {
		return nil, nil
	}
	return migrate.ParseKey(*s)
}

// parseDigest is the inverse of [migrate.Digest.String].
func parseDigest(s string) (d migrate.Digest, err error) {
	if len(s) != 32 {
		return d, fmt.Errorf("%q is no digest", s)
	}
	if d.Hi, err = strconv.ParseUint(s[:16], 16, 64); err != nil {
		return d, err
	}
	d.Lo, err = strconv.ParseUint(s[16:], 16, 64)
	return d, err
}

// An entry is a slot as the hash "open" has it.
type entry struct {
	Index int64   `json:"index,string"`
	Below *string `json:"below"`
	Lo    *string `json:"lo"`
	Born  string  `json:"born"`
	Split bool    `json:"split"`
	Done  bool    `json:"done"`
}

func decodeEntry(text string) (e entry, s migrate.Slot, err error) {
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return e, s, err
	}
	s.Index = e.Index
	s.Below, err = parseKey(e.Below)
	return e, s, err
}

// A storedLine is a ledger line as Redis keeps it. The script adds the second
// half, which it alone knows.
type storedLine struct {
	Pass   migrate.Pass   `json:"pass"`
	Slot   string         `json:"slot"`
	Counts migrate.Counts `json:"counts"`
	Digest string         `json:"digest"`
	Epoch  uint64         `json:"epoch"`
	Plan   string         `json:"plan"`

	Worker string `json:"worker,omitempty"`
	Number int64  `json:"number,omitempty"`
	Empty  int64  `json:"empty,omitempty"`
	Millis int64  `json:"at_ms,omitempty"`
}

func decodeLine(text string) (migrate.LedgerLine, error) {
	var l storedLine
	err := json.Unmarshal([]byte(text), &l)
	return migrate.LedgerLine{Number: l.Number, Pass: l.Pass, Slot: l.Slot, Empty: l.Empty, Counts: l.Counts, Digest: l.Digest,
		Worker: l.Worker, Epoch: l.Epoch, Plan: l.Plan, At: time.UnixMilli(l.Millis).UTC()}, err
}

// countTexts returns counts by their names in Redis.
func countTexts(c migrate.Counts) map[string]string {
	all := map[string]string{}
	for name, n := range countFields(&c) {
		all[name] = strconv.FormatInt(*n, 10)
	}
	return all
}

func parseCounts(texts map[string]string) (c migrate.Counts, err error) {
	fields := countFields(&c)
	for name, text := range texts {
		if fields[name] == nil {
			continue // of a newer version
		}
		if *fields[name], err = strconv.ParseInt(text, 10, 64); err != nil {
			return c, err
		}
	}
	return c, nil
}

func countFields(c *migrate.Counts) map[string]*int64 {
	return map[string]*int64{"read": &c.Read, "bytes": &c.Bytes, "written": &c.Written,
		"already_newer": &c.AlreadyNewer, "already_ours": &c.AlreadyOurs, "quarantined": &c.Quarantined}
}

// parseSpans reads what "finished" holds for a pass.
func parseSpans(text string) (spans []migrate.Span, err error) {
	for _, word := range strings.Fields(text) {
		lo, hi, _ := strings.Cut(word, ":")
		var s migrate.Span
		if s.Lo, err = strconv.ParseInt(lo, 10, 64); err != nil {
			return nil, err
		}
		if s.Hi, err = strconv.ParseInt(hi, 10, 64); err != nil {
			return nil, err
		}
		spans = append(spans, s)
	}
	return spans, nil
}

// millis returns a time to live as Redis takes it.
func millis(d time.Duration) int64 { return max(1, d.Milliseconds()) }
