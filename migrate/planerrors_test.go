package migrate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/migrate"
)

// TestParsePlanSaysWhatIsWrongWhereAndWhatToDo makes one mistake at a time in
// the plan of these tests; the error is the whole line.
func TestParsePlanSaysWhatIsWrongWhereAndWhatToDo(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"a key misspelt":               {"order: newest-first", "oder: newest-first", `plan, line 6: slots.oder: is not a key of slots (did you mean order?)`},
		"a key of nothing":             {"workers:", "colour:", `plan, line 8: colour: is not a key of a plan (its keys are name, source, sink, columns, slots, write, state, retry, workers, page_rows, limits, quarantine, verify)`},
		"a key of a column":            {"as: data", "name: data", `plan, line 5: columns.data.name: is not a key of columns.data (its keys are as, encode)`},
		"a key twice":                  {"workers: ${WORKERS}", "workers: 1\nworkers: 2", `plan, line 9: workers: was given in line 8 already (remove one)`},
		"no name":                      {"name: room_events", "", `plan, line 2: name: is missing (use 1 to 63 letters, digits, '.', '_' and '-')`},
		"a name with a slash":          {"name: room_events", "name: room/events", `plan, line 1: name: the value is no name (use 1 to 63 letters, digits, '.', '_' and '-')`},
		"no source":                    {"source: {", "#", `plan, line 1: source.kind: is missing (use postgres)`},
		"a source nobody knows":        {"kind: postgres", "kind: oracle", `plan, line 2: source.kind: "oracle" is not known (use postgres)`},
		"a source in a word":           {"source: {", "source: postgres #", `plan, line 2: source: "postgres" is not a block of keys (write it like source: {...}, or its keys in lines of their own, indented)`},
		"no key":                       {", key: [id]}", "}", `plan, line 2: source.key: is missing (name the columns of the table's key, like key: [id])`},
		"a key that is no list":        {"key: [id]", "key: id", `plan, line 2: source.key: "id" is not a list of names (write it like key: [id])`},
		"no partition":                 {"partition: room_id, ", "", `plan, line 3: sink.key.partition: is missing (name the attribute of the table's partition key)`},
		"too large a batch":            {"kind: dynamodb", "kind: dynamodb, batch_rows: 26", `plan, line 3: sink.batch_rows: "26" is out of range (use 1 to 25)`},
		"a flag that is none":          {"kind: dynamodb", "kind: dynamodb, create: please", `plan, line 3: sink.create: "please" is not true or false (write it like create: true)`},
		"an encoding nobody knows":     {"encode: map", "encode: json", `plan, line 5: columns.data.encode: "json" is not known (use map or string)`},
		"an axis nobody knows":         {"by: ulid", "by: name", `plan, line 6: slots.by: "name" is not known (use ulid, uuidv7, timestamp or integer)`},
		"a case nobody knows":          {"by: ulid", "by: ulid, case: mixed", `plan, line 6: slots.case: "mixed" is not known (use upper or lower)`},
		"a width that is none":         {"width: 1h", "width: soon", `plan, line 6: slots.width: "soon" is not a width (write it like width: 1h, or a number of keys with by: integer)`},
		"a width of time for integers": {"by: ulid", "by: integer", `plan, line 6: slots.width: is a duration, and slots.by is integer (give a number of keys, like width: 100000)`},
		"a width in numbers for ULIDs": {"width: 1h", "width: 5000", `plan, line 6: slots.width: is a number, and slots.by is not integer (give a duration, like width: 1h)`},
		"a duration without unit":      {"lag: 60s", "lag: 60", `plan, line 6: slots.lag: "60" is not a duration (write it like lag: 90s, 10m or 24h)`},
		"a duration below zero":        {"sweep: 24h", "sweep: -1h", `plan, line 6: slots.sweep: "-1h" is not a duration (write it like sweep: 90s, 10m or 24h)`},
		"a delay without unit":         {"workers:", "retry: {delays: [100ms, 200]}\nworkers:", `plan, line 8: retry.delays: a list is not a list of durations (write it like delays: [100ms, 200ms, 500ms])`},
		"a day for an instant":         {"by: ulid", "by: ulid, from: yesterday", `plan, line 6: slots.from: "yesterday" is not an instant (write it like from: 2024-10-20T00:00:00Z)`},
		"an end before the beginning":  {"by: ulid", "by: ulid, from: 2024-10-20T00:00:00Z, to: 2024-10-19T00:00:00Z", `plan, line 6: slots.to: does not lie after slots.from (exchange them)`},
		"no write":                     {"write: {mode: guarded, version: version}", "", `plan, line 1: write.mode: is missing (say guarded, absent or overwrite: there is no default)`},
		"no write mode":                {"mode: guarded, ", "", `plan, line 7: write.mode: is missing (say guarded, absent or overwrite: there is no default)`},
		"guarded without version":      {", version: version", "", `plan, line 7: write.version: is missing (guarded needs a column that grows with each change of a row)`},
		"absent with deletes":          {"mode: guarded", "mode: absent", `plan, line 7: write.deletes: is missing (only guarded keeps deleted rows deleted; say deletes: none if rows are never deleted)`},
		"deletes nobody knows":         {"mode: guarded", "mode: absent, deletes: some", `plan, line 7: write.deletes: "some" is not known (say none if rows are never deleted; otherwise leave it out)`},
		"a number that is none":        {"${WORKERS}", "many", `plan, line 8: workers: "many" is not a whole number (write it like workers: 8)`},
		"a number of the environment":  {"${WORKERS}", "${PG_DSN}", `plan, line 8: workers: "${PG_DSN}" is not a whole number (write it like workers: 8)`},
		"no workers":                   {"${WORKERS}", "0", `plan, line 8: workers: "0" is out of range (use 1 to 1024)`},
		"a password":                   {"${PG_DSN}", "postgres://me:hunter2@db/app", `plan, line 2: source.dsn: holds a password, which would be kept with the plan in the state (put it into the environment, and here ${NAME} in its place)`},
		"a password by its word":       {"${PG_DSN}", "host=db password=hunter2", `plan, line 2: source.dsn: holds a password, which would be kept with the plan in the state (put it into the environment, and here ${NAME} in its place)`},
		"an endpoint that is no URL":   {`"${ENDPOINT}"`, "localhost", `plan, line 3: sink.endpoint: the value is no URL (write it like http://127.0.0.1:8000, or leave it out for AWS)`},
		"a limit below zero":           {"workers:", "limits: {read_rows_per_second: -1}\nworkers:", `plan, line 8: limits.read_rows_per_second: "-1" is negative (use 0 for no limit)`},
		"a limit that is none":         {"workers:", "limits: {write_units_per_second: .nan}\nworkers:", `plan, line 8: limits.write_units_per_second: ".nan" is no limit (use 0 for none, otherwise 0.001 to 1000000000)`},
		"a limit of nothing":           {"workers:", "limits: {read_rows_per_second: 1e-300}\nworkers:", `plan, line 8: limits.read_rows_per_second: "1e-300" is no limit (use 0 for none, otherwise 0.001 to 1000000000)`},
		"a limit without end":          {"workers:", "limits: {read_rows_per_second: .inf}\nworkers:", `plan, line 8: limits.read_rows_per_second: ".inf" is no limit (use 0 for none, otherwise 0.001 to 1000000000)`},
		"a column of the key twice":    {"key: [id]", "key: [id, at, id]", `plan, line 2: source.key: names a column twice (name each column of the table's key once)`},
		"a lock for ever":              {"workers:", "state: {lock_ttl: 2000000h}\nworkers:", `plan, line 8: state.lock_ttl: "2000000h" is over an hour: for so long nobody goes on where a pod was killed (use 15s to 30s)`},
		"a keeper that sleeps":         {"workers:", "state: {keeper_interval: 2h}\nworkers:", `plan, line 8: state.keeper_interval: "2h" is over an hour: for so long nothing moves on (use a few seconds)`},
		"progress that is forgotten":   {"workers:", "state: {progress_ttl: 0s}\nworkers:", `plan, line 8: state.progress_ttl: "0s" is under state.lock_ttl: what a pod saved would be forgotten before another goes on (use days)`},
		"no time to work":              {"workers:", "state: {stall_timeout: 1ms}\nworkers:", `plan, line 8: state.stall_timeout: "1ms" is under state.lock_ttl: slots would be given up all the time (use minutes)`},
		"a lock that is too short":     {"workers:", "state:\n  kind: redis\n  lock_ttl: 200ms\nworkers:", `plan, line 10: state.lock_ttl: "200ms" is under a second (use 15s to 30s)`},
		"a variable that is not set":   {"${ENDPOINT}", "${NOBODY}", `plan, line 3: the environment variable NOBODY is not set (set it, or write the value)`},
		"a DSN that is a block":        {`dsn: "${PG_DSN}"`, "dsn: {password: hunter2}", `plan, line 2: source.dsn: a block of keys is not a text (write it like dsn: name)`},
		"a DSN for the source":         {"source: {", "source: postgres://u:hunter2@h/db #", `plan, line 2: source: the value is not a block of keys (write it like source: {...}, or its keys in lines of their own, indented)`},
		"a DSN for a key":              {`dsn: "${PG_DSN}"`, "postgres://u:hunter2@h/db", `plan, line 2: source: has a key that is none of source's (its keys are kind, dsn, table, key)`},
		"a DSN with a colon":           {`dsn: "${PG_DSN}"`, "dsn: host: hunter2", `plan, line 2: did not find expected ',' or '}' (correct the YAML there, or just before)`},
		"a password that is an alias":  {"name: room_events", "name: *hunter2", `plan: a value begins with * and names no anchor (put it in quotes: "...")`},
		"text that is no YAML":         {"columns:", "columns: ][", `plan, line 4: did not find expected node content (correct the YAML there, or just before)`},
		"tabs":                         {"  data:", "\tdata:", `plan, line 5: found character that cannot start any token (indent with spaces, not tabs, and put values that begin with @, % or ` + "`" + ` in quotes)`},
		"two plans":                    {"workers:", "---\nworkers:", `plan, line 8: a second document begins here (a file has one plan)`},
		"nothing":                      {plan, "# nothing", `plan: is empty (begin with name, source, sink and write)`},
		"a list":                       {plan, "- name", `plan, line 1: a list is not a block of keys (write it like {...}, or its keys in lines of their own, indented)`},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(plan, c.from) {
				t.Fatalf("the plan has no %q", c.from)
			}
			_, err := migrate.ParsePlan([]byte(strings.Replace(plan, c.from, c.to, 1)), env)
			if _, ok := errors.AsType[*migrate.PlanError](err); !ok || err.Error() != c.want {
				t.Errorf("error  %v\nwanted %s", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("a secret is told: %v", err)
			}
		})
	}
}

// TestLinesOfKeys: also what is not in the file has a line: that of its block.
func TestLinesOfKeys(t *testing.T) {
	p, err := migrate.ParsePlan([]byte(plan), env)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]int{
		"name": 1, "source.key": 2, "columns.data": 5, "columns.data.as": 5, "columns.other": 4, "slots.from": 6,
		"sink.key.partition": 3, "sink.key.none": 3, "state.url": 1, "": 1,
	} {
		if got := p.Line(field); got != want {
			t.Errorf("%q: line %d, want %d", field, got, want)
		}
	}
	if got := (migrate.Plan{}).Line("source.key"); got != 0 {
		t.Errorf("a plan without a file: line %d", got)
	}
}

func TestPlansMayShareBlocks(t *testing.T) {
	text := strings.Replace(plan, "  data: {as: data, encode: map}", "  data: &json {encode: map}\n  more: {<<: *json, as: extra}\n  last: *json", 1)
	p, err := migrate.ParsePlan([]byte(text), env)
	if err != nil || p.Columns["more"] != (migrate.ColumnPlan{As: "extra", Encode: "map"}) || p.Columns["last"].Encode != "map" {
		t.Errorf("%+v, %v", p.Columns, err)
	}
}

// FuzzParsePlan: whatever the file is, an error is one line of a PlanError.
func FuzzParsePlan(f *testing.F) {
	f.Add(plan)
	f.Add("name: &a [*a]\nsource: *a\n<<: *a")
	f.Add("? {a: b}\n: c\n!!binary x: ${PG_DSN}")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := migrate.ParsePlan([]byte(text), env)
		if _, ok := errors.AsType[*migrate.PlanError](err); err != nil && (!ok || strings.ContainsAny(err.Error(), "\n\r")) {
			t.Errorf("%v", err)
		}
	})
}
