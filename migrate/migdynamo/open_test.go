package migdynamo_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migdynamo"
)

func TestOpenRefusesWhatDoesNotFit(t *testing.T) {
	there := newPlan(realtest.DynaliteURL(t), migrate.Guarded)
	open(t, there, migdynamo.Options{})
	for name, c := range map[string]struct {
		change func(*migrate.Plan)
		field  string
		words  []string
	}{
		"no table":          {func(p *migrate.Plan) { p.Sink.Table, p.Sink.Create = "none", false }, "sink.table", []string{`"none" does not exist`, "create: true"}},
		"another partition": {func(p *migrate.Plan) { p.Sink.Key.Partition = "user" }, "sink.key", []string{"is {partition: room_id, sort: id}, not {partition: user, sort: id}"}},
		"no sort key":       {func(p *migrate.Plan) { p.Sink.Key.Sort = "" }, "sink.key", []string{"not {partition: room_id}"}},
		"a reserved column": {func(p *migrate.Plan) { p.Columns = map[string]migrate.ColumnPlan{"v": {As: "_version"}} }, "columns.v", []string{"reserved"}},
		"a reserved key":    {func(p *migrate.Plan) { p.Sink.Key.Sort = "_key" }, "sink.key", []string{"reserved"}},
		"no region":         {func(p *migrate.Plan) { p.Sink.Endpoint = "" }, "sink.region", []string{"AWS_REGION"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_REGION", "")
			t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			plan := there
			c.change(&plan)
			_, err := migdynamo.Open(t.Context(), plan, migdynamo.Options{})
			wrong, ok := errors.AsType[*migrate.PlanError](err)
			if !ok || wrong.Field != c.field || wrong.Remedy == "" {
				t.Fatalf("error %v, want one of the plan at %s with a remedy", err, c.field)
			}
			for _, word := range c.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
		})
	}
}

func TestManyCreateTheSameTable(t *testing.T) {
	plan := newPlan(realtest.DynaliteURL(t), migrate.Guarded)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() { open(t, plan, migdynamo.Options{}) })
	}
	wg.Wait()
}

func TestKeysOfATableThatIsCreatedHaveTheKindsOfTheSource(t *testing.T) {
	plan := newPlan(realtest.DynaliteURL(t), migrate.Guarded)
	sink := open(t, plan, migdynamo.Options{KeyKinds: map[string]migrate.Kind{"room_id": migrate.Bytes, "id": migrate.Number}})
	r := migrate.Row{Key: migrate.Key{"1.50"}, Version: 1, Fields: []migrate.Field{
		{Name: "room_id", Value: migrate.Value{Kind: migrate.Bytes, Text: "\xff\x00"}}, {Name: "id", Value: migrate.Value{Kind: migrate.Number, Text: "1.50"}}}}
	allWritten(t, write(t, sink, r))
	got, err := sink.Read(t.Context(), []migrate.Row{r})
	want, _ := sink.Expect(r)
	if err != nil || !got[0].Key.Equal(r.Key) || got[0].Ref != want.Ref || got[0].Digest != want.Digest {
		t.Fatalf("%+v, %v; want %+v", got, err, want)
	}
	if again, err := sink.Refresh(t.Context(), got); err != nil || again[0].Digest != want.Digest {
		t.Fatalf("%+v, %v", again, err)
	}
}

func TestOpenWithoutAServerIsTransient(t *testing.T) {
	proxy := realtest.NewDynamoProxy(t, realtest.DynaliteURL(t))
	proxy.Cut()
	begin := time.Now()
	_, err := migdynamo.Open(t.Context(), newPlan(proxy.URL, migrate.Guarded), migdynamo.Options{})
	if !errors.Is(err, migrate.ErrTransient) || time.Since(begin) > 10*time.Second {
		t.Fatalf("after %v: %v", time.Since(begin), err)
	}
}

func TestPreflightTellsWhatIndexesCost(t *testing.T) {
	plan := newPlan(realtest.DynaliteURL(t), migrate.Guarded)
	plan.Source.Key = []string{"serial"}
	tableOf(plan).create(t)
	found, err := open(t, plan, migdynamo.Options{}).Preflight(t.Context())
	if err != nil || len(found) != 2 || found[0].Severity != migrate.Warning || !strings.Contains(found[0].Message, "1 global indexes") ||
		found[1].Severity != migrate.Note || found[1].Field != "sink.key" {
		t.Fatalf("%+v, %v", found, err)
	}
}

func TestPreflightComparesTheLimitWithTheTable(t *testing.T) {
	plan := newPlan(realtest.DynaliteURL(t), migrate.Guarded)
	tb := tableOf(plan)
	in := tb.schema()
	in.ProvisionedThroughput = provisioned(5)
	if _, err := tb.raw.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[float64]string{0: "provisioned with 5 write units", 10: "is 10, but the table is provisioned with 5", 5: ""} {
		plan.Limits.WriteUnits = limit
		found, err := open(t, plan, migdynamo.Options{}).Preflight(t.Context())
		if err != nil || (len(found) == 1) != (want != "") || want != "" && !strings.Contains(found[0].Message, want) {
			t.Errorf("limit %g: %+v, %v", limit, found, err)
		}
	}
}
