package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// badPlan puts rows into items by a column that is not the source's key.
const badPlan = `name: things
source: {kind: postgres, dsn: "${PG_DSN}", table: things, key: [id]}
sink: {kind: dynamodb, table: "${TABLE}", region: us-east-1, endpoint: "${DYNAMODB_ENDPOINT}", key: {partition: slug}, create: true}
columns: {raw: {encode: ENCODE}, amount: {}, slug: {}}
write: {mode: guarded, version: version}
workers: 2
page_rows: 10
`

// newThings returns a table of 60 good rows in two hours.
func newThings(t *testing.T, encode, state string) *migrating {
	m := newMigrating(t, state, 0, 0)
	m.write("plan.yaml", strings.Replace(badPlan, "ENCODE", encode, 1)+state+soon)
	m.exec(`CREATE TABLE things (id text COLLATE "C" PRIMARY KEY, slug text NOT NULL, amount numeric, raw json, version bigint NOT NULL DEFAULT 1)`)
	for n := range 60 {
		m.thing(n, fmt.Sprint("thing ", n), "1.50", `{"n": 1}`)
	}
	return m
}

// thing inserts a row, the nth of the day: the first thirty are of one hour,
// the others of the next. It returns its key.
func (m *migrating) thing(n int, slug, amount, raw string) string {
	m.t.Helper()
	id := ulidAt(min(n/30, 1), n)
	m.exec("INSERT INTO things VALUES ($1, $2, $3::numeric, $4)", id, slug, amount, raw)
	return id
}

// inQuarantine returns the reasons by key.
func (m *migrating) inQuarantine() map[string]string {
	m.t.Helper()
	reasons := map[string]string{}
	for line := range strings.Lines(m.want("tallystick migrate report -f plan.yaml --quarantine -o json", 0, ``)) {
		var q struct{ Key, Reason, Slot string }
		if err := json.Unmarshal([]byte(line), &q); err != nil || !strings.HasPrefix(q.Slot, "20241020.0") {
			m.t.Fatalf("%s: %v", line, err)
		}
		reasons[q.Key] = q.Reason
	}
	return reasons
}

// TestBadRowsAreSetAsideAndComeBack: each with its reason; all others arrive.
func TestBadRowsAreSetAsideAndComeBack(t *testing.T) {
	for name, c := range map[string]struct{ encode, state string }{"as text, file": {"string", stateInFile}, "as maps, Redis": {"map", stateInRedis}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newThings(t, c.encode, c.state)
			want := map[string]string{
				m.thing(60, "large", "1", `{"text": "`+strings.Repeat("x", 500_000)+`"}`): `^the item has 500\d\d\d bytes, at most 409600; attribute "raw" alone has`,
				m.thing(61, "exact", "123456789012345678901234567890123456789", "{}"):     `the number has 39 significant digits, at most 38`,
				m.thing(62, "none", "NaN", "{}"):                                          `"NaN" is not a number`,
				m.thing(63, "", "1", "{}"):                                                `"slug" of the table's key is empty`,
			}
			m.thing(64, "thing 64", "99999999999999999999999999999999999999", "{}") // 38 digits
			near, nearer := m.thing(65, "twin", "1", "{}"), m.thing(66, "twin", "2", "{}")
			far := m.thing(59_000, "thing 3", "2", "{}") // whose page has not the other one
			m.ended(m.pod("--start"), 3)

			got := m.inQuarantine()
			t.Log(strings.Join(slices.Sorted(maps.Values(got)), "\n"))
			for key, reason := range want {
				if !regexp.MustCompile(reason).MatchString(got[key]) {
					t.Errorf("row %s: %q, want %s", key, got[key], reason)
				}
			}
			twins := m.twins(got, near, nearer, far, ulidAt(0, 3))
			if len(got) != 6 || len(twins) != 2 {
				t.Errorf("in quarantine are %v", got)
			}
			m.want("tallystick migrate status -f plan.yaml", 0, `(?m)^rows +68 read, 62 written, .* 6 quarantined$`)
			m.want("tallystick migrate report -f plan.yaml -o json", 0, `"quarantined":[1-6]`)
			m.want("tallystick migrate verify -f plan.yaml", 3, `^quarantined: 62 compared, 0 missing, 0 different, 0 extra, 0 unsettled, 6 quarantined\n$`)
			m.want("tallystick migrate verify -f plan.yaml --mode samples", 3, `^quarantined: .* 6 quarantined\n$`)

			m.exec("UPDATE things SET raw = '{}', amount = 5, version = 2 WHERE slug IN ('large', 'exact', 'none')")
			m.want("tallystick migrate replay -f plan.yaml", 3, `^settled 3, left 3 in quarantine\n$`)
			m.want("tallystick migrate verify -f plan.yaml", 3, `^quarantined: 65 compared, .* 3 quarantined\n$`)
			m.exec("UPDATE things SET slug = 'thing ' || id, version = 2 WHERE slug = '' OR id = $1", twins[0])
			m.exec("DELETE FROM things WHERE id = $1", twins[1])
			m.want("tallystick migrate replay -f plan.yaml", 0, `^settled 3, left 0 in quarantine\n$`)
			m.want("tallystick migrate verify -f plan.yaml", 0, `^clean: 67 compared, `+nothingWrong)
			m.want("tallystick migrate run -f plan.yaml", 0, `"quarantined":`)
		})
	}
}

// twins returns which of pairs of keys are in quarantine, and checks that it is
// one of each for its sibling's sake.
func (m *migrating) twins(reasons map[string]string, keys ...string) (aside []string) {
	m.t.Helper()
	for n := 0; n < len(keys); n += 2 {
		for i, sibling := range []string{keys[n+1], keys[n]} {
			if reason, ok := reasons[keys[n+i]]; ok {
				aside = append(aside, keys[n+i])
				if !regexp.MustCompile(`^item \S+ is also that of row ` + sibling + `$`).MatchString(reason) {
					m.t.Errorf("row %s: %q", keys[n+i], reason)
				}
			}
		}
	}
	return aside
}

// TestJSONArrivesExactly: a NUL, a number beyond float64, digits after the
// point, and an order of keys.
func TestJSONArrivesExactly(t *testing.T) {
	const raw = `{"z": "a\u0000b", "n": 9007199254740993, "d": 1.10, "l": [1e2, null, true, "ü"]}`
	for encode, check := range map[string]func(types.AttributeValue) bool{
		"string": func(v types.AttributeValue) bool {
			s, ok := v.(*types.AttributeValueMemberS)
			return ok && s.Value == raw
		},
		"map": func(v types.AttributeValue) bool {
			got, ok := v.(*types.AttributeValueMemberM)
			if !ok {
				return false
			}
			z, _ := got.Value["z"].(*types.AttributeValueMemberS)
			n, _ := got.Value["n"].(*types.AttributeValueMemberN)
			d, _ := got.Value["d"].(*types.AttributeValueMemberN)
			l, _ := got.Value["l"].(*types.AttributeValueMemberL)
			return z != nil && z.Value == "a\x00b" && n != nil && n.Value == "9007199254740993" && d != nil && (d.Value == "1.1" || d.Value == "1.10") && l != nil && len(l.Value) == 4
		},
	} {
		t.Run(encode, func(t *testing.T) {
			t.Parallel()
			m := newThings(t, encode, stateInFile)
			m.thing(60, "exact", "9007199254740993", raw)
			m.ended(m.pod("--start"), 0)
			item := m.items().get(attributes{"slug": str("exact")})
			if !check(item["raw"]) {
				t.Errorf("raw is %#v", item["raw"])
			}
			if n, ok := item["amount"].(*types.AttributeValueMemberN); !ok || n.Value != "9007199254740993" {
				t.Errorf("amount is %#v", item["amount"])
			}
			m.want("tallystick migrate verify -f plan.yaml", 0, `^clean: 61 compared, `+nothingWrong)
		})
	}
}
