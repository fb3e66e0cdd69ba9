package migdynamo_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tallystick/tallystick/internal/realtest"
	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migdynamo"
)

type attributes = map[string]types.AttributeValue

// newPlan returns a plan for room_events: the source's key id, the table's key
// room_id and id.
func newPlan(url string, mode migrate.Mode) migrate.Plan {
	ms := migrate.Duration(time.Millisecond)
	return migrate.Plan{
		Source: migrate.SourcePlan{Key: []string{"id"}},
		Sink: migrate.SinkPlan{Kind: "dynamodb", Table: realtest.TableName(), Endpoint: url, Create: true, BatchRows: 25,
			Key: migrate.SinkKeyPlan{Partition: "room_id", Sort: "id"}},
		Write: migrate.WritePlan{Mode: mode},
		Retry: migrate.RetryPlan{Delays: []migrate.Duration{ms, 2 * ms, 5 * ms}},
	}
}

func open(t testing.TB, plan migrate.Plan, o migdynamo.Options) *migdynamo.Sink {
	t.Helper()
	s, err := migdynamo.Open(t.Context(), plan, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newSink returns a sink on a new table.
func newSink(t testing.TB, mode migrate.Mode) (*migdynamo.Sink, table) {
	t.Helper()
	plan := newPlan(realtest.DynaliteURL(t), mode)
	return open(t, plan, migdynamo.Options{}), tableOf(plan)
}

// A table is looked at without the sink.
type table struct {
	name string
	raw  *dynamodb.Client
}

func tableOf(plan migrate.Plan) table {
	return table{plan.Sink.Table, dynamodb.New(dynamodb.Options{
		BaseEndpoint: &plan.Sink.Endpoint, Region: "us-east-1", Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
		HTTPClient:  wholeBody{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}},
	})}
}

// wholeBody hands net/http the request body as bytes: see realtest.
type wholeBody struct{ client aws.HTTPClient }

func (w wholeBody) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return w.client.Do(r)
}

func (tb table) put(t testing.TB, i attributes) {
	t.Helper()
	if _, err := tb.raw.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: i}); err != nil {
		t.Fatal(err)
	}
}

// get returns the item of a row, nil if there is none.
func (tb table) get(t testing.TB, r migrate.Row) attributes {
	t.Helper()
	key := attributes{}
	for _, f := range r.Fields {
		if f.Name == "room_id" || f.Name == "id" {
			key[f.Name] = s(f.Value.Text)
		}
	}
	out, err := tb.raw.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &tb.name, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

func (tb table) count(t testing.TB) (n int) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(tb.raw, &dynamodb.ScanInput{TableName: &tb.name, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Items)
	}
	return n
}

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
func yes() types.AttributeValue       { return &types.AttributeValueMemberBOOL{Value: true} }

func text(v string) migrate.Value { return migrate.Value{Kind: migrate.Text, Text: v} }

// row returns a row of room r.
func row(id string, version int64, fields ...migrate.Field) migrate.Row {
	return migrate.Row{Key: migrate.Key{id}, Version: version, Fields: append([]migrate.Field{
		{Name: "room_id", Value: text("r")}, {Name: "id", Value: text(id)}}, fields...)}
}

func data(v migrate.Value) migrate.Field { return migrate.Field{Name: "data", Value: v} }

func rows(count int) []migrate.Row {
	all := make([]migrate.Row, count)
	for i := range all {
		all[i] = row(fmt.Sprintf("k%05d", i), 1, data(text(fmt.Sprint("row ", i))))
	}
	return all
}

func outcomes(results []migrate.Result) []migrate.Outcome {
	all := make([]migrate.Outcome, len(results))
	for i, r := range results {
		all[i] = r.Outcome
	}
	return all
}

// write writes and fails the test on an error.
func write(t testing.TB, sink *migdynamo.Sink, rows ...migrate.Row) []migrate.Result {
	t.Helper()
	results, err := sink.Writer().Write(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func allWritten(t testing.TB, results []migrate.Result) {
	t.Helper()
	for i, r := range results {
		if r.Outcome != migrate.Written {
			t.Fatalf("row %d: %+v", i, r)
		}
	}
}

func TestEachModeWritesWhatItMay(t *testing.T) {
	const (
		W, N, O, D, R = migrate.Written, migrate.AlreadyNewer, migrate.AlreadyOurs, migrate.Differs, migrate.Refused
	)
	x, y := data(text("x")), data(text("y"))
	batch := []migrate.Row{row("new", 5, x), row("same", 5, x), row("other", 5, y), row("older", 5, x), row("newer", 5, x),
		row("gone", 5, x), row("gone before", 5, x), row("unversioned", 5, y), row("", 5)}
	for mode, want := range map[migrate.Mode][]migrate.Outcome{
		migrate.Guarded:   {W, O, D, W, N, N, W, R, R},
		migrate.Absent:    {W, O, N, O, O, N, N, N, R}, // its items have no version
		migrate.Overwrite: {W, W, W, W, W, W, W, W, R},
	} {
		t.Run(string(mode), func(t *testing.T) {
			sink, table := newSink(t, mode)
			for id, version := range map[string]string{"same": "5", "other": "5", "older": "4", "newer": "6"} {
				table.put(t, attributes{"room_id": s("r"), "id": s(id), "data": s("x"), "_version": n(version)})
			}
			table.put(t, attributes{"room_id": s("r"), "id": s("gone"), "_version": n("5"), "_deleted": yes()})
			table.put(t, attributes{"room_id": s("r"), "id": s("gone before"), "_version": n("4"), "_deleted": yes()})
			table.put(t, attributes{"room_id": s("r"), "id": s("unversioned"), "data": s("x")})
			if diff := cmp.Diff(want, outcomes(write(t, sink, batch...))); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func (tb table) drop(t testing.TB) {
	t.Helper()
	if _, err := tb.raw.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &tb.name}); err != nil {
		t.Fatal(err)
	}
	err := dynamodb.NewTableNotExistsWaiter(tb.raw, func(o *dynamodb.TableNotExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 10*time.Millisecond
	}).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &tb.name}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
}

// schema returns the request for the table, without how it is paid.
func (tb table) schema() *dynamodb.CreateTableInput {
	attr := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
	}
	return &dynamodb.CreateTableInput{TableName: &tb.name,
		KeySchema:            []types.KeySchemaElement{hash("room_id"), {AttributeName: aws.String("id"), KeyType: types.KeyTypeRange}},
		AttributeDefinitions: []types.AttributeDefinition{attr("room_id"), attr("id")}}
}

func hash(name string) types.KeySchemaElement {
	return types.KeySchemaElement{AttributeName: &name, KeyType: types.KeyTypeHash}
}

func provisioned(units int64) *types.ProvisionedThroughput {
	return &types.ProvisionedThroughput{ReadCapacityUnits: &units, WriteCapacityUnits: &units}
}

// create makes the table, with a global index whose key is the text flag.
func (tb table) create(t testing.TB) {
	t.Helper()
	in := tb.schema()
	in.BillingMode = types.BillingModePayPerRequest
	in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("flag"), AttributeType: types.ScalarAttributeTypeS})
	in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{IndexName: aws.String("by-flag"), KeySchema: []types.KeySchemaElement{hash("flag")},
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}}}
	if _, err := tb.raw.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}
