package seqdynamo

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/tallystick/tallystick/sequence"
)

// Options of [Open]. Table must be given, all else may be left out.
type Options struct {
	Table    string
	Client   *dynamodb.Client // nil: one is made from Region, Endpoint and the environment
	Region   string           // "": as the environment says
	Endpoint string           // another server of DynamoDB's API; "": AWS
	Timeout  time.Duration    // of one request; 0: 2 s

	// Create makes the table, billed by request, if it does not exist, and
	// waits up to a minute for it.
	Create bool

	// Adopt opens a table that is another than its content says, so that
	// its counters can be moved and [Store.Adopt] called.
	Adopt bool
}

// A Store is a [sequence.Store] in a DynamoDB table. It lists names in the
// table's own order. It is safe for concurrent use, by many processes too; see
// the package comment for what it promises and how it fails. It holds nothing
// that has to be closed.
type Store struct {
	client  *dynamodb.Client
	table   string
	timeout time.Duration
	guard   guard
}

// Open returns a store on a table, which is checked: that it has the right
// key, that it is safe for counters, and that it is the table its content was
// written in. It fails with [sequence.ErrPrecondition] otherwise.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Table == "" {
		return nil, &sequence.Error{Code: sequence.CodeInvalid, Field: "table", Message: "the name of the DynamoDB table is missing"}
	}
	client := o.Client
	if client == nil {
		var err error
		if client, err = newClient(ctx, o); err != nil {
			return nil, wrap("open table", o.Table, err)
		}
	}
	s := &Store{client: client, table: o.Table, timeout: cmp.Or(o.Timeout, defaultTimeout), guard: guard{table: o.Table}}
	if err := s.open(ctx, o); err != nil {
		return nil, wrap("open table", o.Table, err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, o Options) error {
	id, err := s.awaitTable(ctx, o.Create)
	if err != nil {
		return err
	}
	meta, err := s.ensureMeta(ctx, id, o.Adopt)
	if err != nil {
		return err
	}
	s.guard.open(meta.identity, o.Adopt)
	return s.guard.compare(id)
}

// newClient returns a client as the environment configures it: with AWS's
// usual chain of credentials. An endpoint on this machine needs neither
// credentials nor a region.
func newClient(ctx context.Context, o Options) (*dynamodb.Client, error) {
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})} // what goes wrong is in the errors
	if o.Region != "" {
		options = append(options, config.WithRegion(o.Region))
	}
	if loopback(o.Endpoint) {
		options = append(options, config.WithDefaultRegion("local"))
		if os.Getenv("AWS_ACCESS_KEY_ID") == "" && os.Getenv("AWS_PROFILE") == "" {
			options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("local", "local", "")))
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, &sequence.Error{Code: sequence.CodePrecondition, Field: "credentials", Message: "the AWS configuration cannot be read", Err: err,
			Remedy: "check AWS_PROFILE and AWS's files"}
	}
	if cfg.Region == "" {
		return nil, &sequence.Error{Code: sequence.CodeInvalid, Field: "region", Message: "the AWS region is not known",
			Remedy: "name it, or set AWS_REGION"}
	}
	return dynamodb.NewFromConfig(cfg, func(d *dynamodb.Options) {
		d.HTTPClient = newHTTPClient()
		if o.Endpoint != "" {
			d.BaseEndpoint = &o.Endpoint
		}
	}), nil
}

// newHTTPClient keeps a connection for each of a server's concurrent requests,
// the SDK's default being 10, and drops idle ones before AWS does: a write on
// a connection that AWS just closed has an unknown outcome.
func newHTTPClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost, t.MaxConnsPerHost = 128, 128, 256
		t.IdleConnTimeout = 20 * time.Second
	})
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
