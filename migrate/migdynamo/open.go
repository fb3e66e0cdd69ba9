package migdynamo

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/tallystick/tallystick/migrate"
)

// Options of [Open]. All may be left out.
type Options struct {
	// KeyKinds tells what the values of the table's key are, by attribute, for
	// a table that is to be created: Number, Bytes, or Text, which is the
	// default.
	KeyKinds map[string]migrate.Kind

	Timeout  time.Duration // of one HTTP request; 0: 5 s
	InFlight int           // requests of one writer at a time; 0: 8
	Segments int           // of a scan, read at a time; 0: 4
}

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
	inFlight   int
	segments   int
	scratch    sync.Pool // of *[]byte
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
		timeout: cmp.Or(o.Timeout, 5*time.Second), inFlight: cmp.Or(o.InFlight, 8), segments: cmp.Or(o.Segments, 4),
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

// newClient returns a client as the environment configures it: with AWS's
// usual chain of credentials. An endpoint on this machine needs neither
// credentials nor a region.
func newClient(ctx context.Context, p migrate.SinkPlan) (*dynamodb.Client, error) {
	var options []func(*config.LoadOptions) error
	if p.Region != "" {
		options = append(options, config.WithRegion(p.Region))
	}
	if loopback(p.Endpoint) {
		options = append(options, config.WithDefaultRegion("local"))
		if os.Getenv("AWS_ACCESS_KEY_ID") == "" && os.Getenv("AWS_PROFILE") == "" {
			options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("local", "local", "")))
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("migdynamo: the AWS configuration cannot be read: %w", err)
	}
	if cfg.Region == "" {
		return nil, &migrate.PlanError{Field: "sink.region", Message: "is not known", Remedy: "name it, or set AWS_REGION"}
	}
	return dynamodb.NewFromConfig(cfg, func(d *dynamodb.Options) {
		d.HTTPClient = newHTTPClient()
		d.Retryer = aws.NopRetryer{}
		d.EndpointResolverV2 = &rememberedEndpoints{EndpointResolverV2: dynamodb.NewDefaultEndpointResolverV2()}
		d.Logger = logging.Nop{} // what goes wrong is in the errors
		if p.Endpoint != "" {
			d.BaseEndpoint = &p.Endpoint
		}
	}), nil
}

// loopback reports whether endpoint is on this machine.
func loopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
