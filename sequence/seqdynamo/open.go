package seqdynamo

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/tallystick/tallystick/internal/awsdynamo"
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

// connections is how many are kept for a server's concurrent requests.
const connections = 128

// newClient returns a client as o and the environment configure it.
func newClient(ctx context.Context, o Options) (*dynamodb.Client, error) {
	client, err := awsdynamo.New(ctx, awsdynamo.Options{Region: o.Region, Endpoint: o.Endpoint, Connections: connections})
	switch {
	case errors.Is(err, awsdynamo.ErrNoRegion):
		return nil, &sequence.Error{Code: sequence.CodeInvalid, Field: "region", Message: "the AWS region is not known",
			Remedy: "name it, or set AWS_REGION"}
	case err != nil:
		return nil, &sequence.Error{Code: sequence.CodePrecondition, Field: "credentials", Message: "the AWS configuration cannot be read", Err: err,
			Remedy: "check AWS_PROFILE and AWS's files"}
	}
	return client, nil
}
