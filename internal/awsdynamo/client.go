// Package awsdynamo makes clients of DynamoDB's API: what the stores and sinks
// that use it have in common. They retry by themselves and bound each request
// by its context, so the SDK's own retries are off.
package awsdynamo

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
)

// Options of [New].
type Options struct {
	Region      string                      // "": as the environment says
	Endpoint    string                      // another server of DynamoDB's API; "": AWS
	Connections int                         // kept open while idle; the SDK keeps 10
	Over        func(context.Context) error // see [LastLook]; nil: whether the context has ended
}

// ErrNoRegion: neither the options nor the environment name a region.
var ErrNoRegion = errors.New("the AWS region is not known")

// New returns a client as the environment configures it, with AWS's usual
// chain of credentials. An endpoint on this machine needs neither credentials
// nor a region. It fails with [ErrNoRegion], or with the SDK's error where
// AWS's files cannot be read.
func New(ctx context.Context, o Options) (*dynamodb.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx, o.load()...)
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, ErrNoRegion
	}
	return dynamodb.NewFromConfig(cfg, func(d *dynamodb.Options) {
		d.HTTPClient = LastLook{Client: newHTTPClient(o.Connections), Over: o.Over}
		d.Retryer = aws.NopRetryer{}
		d.EndpointResolverV2 = &rememberedEndpoints{EndpointResolverV2: dynamodb.NewDefaultEndpointResolverV2()}
		if o.Endpoint != "" {
			d.BaseEndpoint = &o.Endpoint
		}
	}), nil
}

// load returns how the SDK is to read its configuration.
func (o Options) load() []func(*config.LoadOptions) error {
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
	return options
}

// newHTTPClient keeps a connection for each of a process's concurrent requests
// and drops idle ones before AWS does: a write on a connection that AWS just
// closed has an unknown outcome.
func newHTTPClient(connections int) aws.HTTPClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost, t.MaxConnsPerHost = connections, connections, 0
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
