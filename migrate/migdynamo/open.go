package migdynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/tallystick/tallystick/internal/awsdynamo"
	"github.com/tallystick/tallystick/migrate"
)

// Options of [Open]. All may be left out.
type Options struct {
	// KeyKinds tells what the values of the table's key are, by attribute, for
	// a table that is to be created: Number, Bytes, or Text, which is the
	// default.
	KeyKinds map[string]migrate.Kind

	Timeout  time.Duration // of one HTTP request; 0: 5 s
	Segments int           // of a scan, read at a time; 0: 4
}

// inFlight is how many requests of one writer are under way at a time.
const inFlight = 8

var _ migrate.Sink = (*Sink)(nil)

// A Sink is a DynamoDB table as a [migrate.Sink]. It is safe for concurrent
// use, and holds nothing that has to be closed.
type Sink struct {
	client     *dynamodb.Client
	table      string
	mode       migrate.Mode
	schema     schema
	keyColumns []string // attributes of the source's key
	guards     guards
	batchRows  int
	delays     []time.Duration
	limiter    limiter
	timeout    time.Duration
	segments   int
	scratch    sync.Pool                // of *[]byte, for digestOf
	names      atomic.Pointer[[]string] // of the last item, sorted
	items      sync.Pool                // of item, for Expect
}

// Open returns the sink of a plan. A [*migrate.PlanError] says that the table
// does not exist or has another key than the plan says.
func Open(ctx context.Context, plan migrate.Plan, o Options) (*Sink, error) {
	if err := checkNames(plan); err != nil {
		return nil, err
	}
	client, err := newClient(ctx, plan.Sink)
	if err != nil {
		return nil, err
	}
	s := &Sink{
		client: client, table: plan.Sink.Table, mode: plan.Write.Mode, keyColumns: keyColumns(plan),
		batchRows: cmp.Or(plan.Sink.BatchRows, 25), limiter: newLimiter(plan.Limits.WriteUnits),
		timeout: cmp.Or(o.Timeout, 5*time.Second), segments: cmp.Or(o.Segments, 4),
	}
	for _, d := range plan.Retry.Delays {
		s.delays = append(s.delays, time.Duration(d))
	}
	if err := s.openTable(ctx, plan.Sink, o.KeyKinds); err != nil {
		return nil, err
	}
	s.guards = newGuards(s.schema, s.keyColumns)
	return s, nil
}

// SetShare makes f of the plan's write units a second this process's.
func (s *Sink) SetShare(f float64) { s.limiter.setShare(f) }

// keyColumns returns the attributes of the source's key columns.
func keyColumns(plan migrate.Plan) []string {
	attrs := make([]string, len(plan.Source.Key))
	for n, column := range plan.Source.Key {
		attrs[n] = cmp.Or(plan.Columns[column].As, column)
	}
	return attrs
}

// checkNames refuses a plan that uses an attribute of ours.
func checkNames(plan migrate.Plan) error {
	for column, c := range plan.Columns {
		if name := cmp.Or(c.As, column); reserved(name) {
			return &migrate.PlanError{Field: "columns." + column, Message: fmt.Sprintf("attribute %q is reserved", name), Remedy: "store it under another name, by as"}
		}
	}
	for _, name := range []string{plan.Sink.Key.Partition, plan.Sink.Key.Sort} {
		if reserved(name) {
			return &migrate.PlanError{Field: "sink.key", Message: fmt.Sprintf("attribute %q is reserved", name), Remedy: "name another"}
		}
	}
	return nil
}

// connections is how many are kept for a pod's concurrent requests.
const connections = 1024

// newClient returns a client as the plan and the environment configure it.
func newClient(ctx context.Context, p migrate.SinkPlan) (*dynamodb.Client, error) {
	client, err := awsdynamo.New(ctx, awsdynamo.Options{Region: p.Region, Endpoint: p.Endpoint, Connections: connections, Over: over})
	switch {
	case errors.Is(err, awsdynamo.ErrNoRegion):
		return nil, &migrate.PlanError{Field: "sink.region", Message: "is not known", Remedy: "name it, or set AWS_REGION"}
	case err != nil:
		return nil, fmt.Errorf("migdynamo: the AWS configuration cannot be read: %w", err)
	}
	return client, nil
}
