package awsdynamo

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	transport "github.com/aws/smithy-go/endpoints"
)

// withoutAWS takes what this machine knows of AWS from the test.
func withoutAWS(t *testing.T) {
	for _, name := range []string{"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
}

// serve returns a client of a server that answers every request with an item,
// and counts the requests and the connections.
func serve(t *testing.T, over func(context.Context) error) (client *dynamodb.Client, requests, connections *atomic.Int64) {
	requests, connections = new(atomic.Int64), new(atomic.Int64)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		io.WriteString(w, `{"Item":{"name":{"S":"`+strings.Repeat("x", 100_000)+`"}}}`)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client, err := New(t.Context(), Options{Endpoint: server.URL, Connections: 8, Over: over})
	if err != nil {
		t.Fatal(err)
	}
	return client, requests, connections
}

func get(ctx context.Context, client *dynamodb.Client) error {
	table := "table"
	key := map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: strings.Repeat("k", 10_000)}}
	_, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key})
	return err
}

func TestOneConnectionServesManyRequests(t *testing.T) {
	withoutAWS(t)
	client, requests, connections := serve(t, nil)
	for range 200 {
		if err := get(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	if requests.Load() != 200 || connections.Load() != 1 {
		t.Errorf("%d requests over %d connections, want 200 over 1", requests.Load(), connections.Load())
	}
}

// late is the context of a process that was stopped beyond its deadline: the
// timer has not fired yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }
func (late) Err() error                  { return nil }
func (late) Done() <-chan struct{}       { return nil }

func TestNothingIsSentThatIsOver(t *testing.T) {
	withoutAWS(t)
	errOver := errors.New("over")
	for name, c := range map[string]struct {
		ctx  context.Context
		over func(context.Context) error
		want error
	}{
		"beyond the deadline": {late{t.Context()}, nil, context.DeadlineExceeded},
		"its owner says so":   {t.Context(), func(context.Context) error { return errOver }, errOver},
	} {
		client, requests, _ := serve(t, c.over)
		if err := get(c.ctx, client); !errors.Is(err, c.want) || requests.Load() != 0 {
			t.Errorf("%s: %v, %d requests came", name, err, requests.Load())
		}
	}
}

// asked counts how often the SDK's own resolver is asked.
type asked struct {
	dynamodb.EndpointResolverV2
	n int
}

func (a *asked) ResolveEndpoint(ctx context.Context, p dynamodb.EndpointParameters) (transport.Endpoint, error) {
	a.n++
	return a.EndpointResolverV2.ResolveEndpoint(ctx, p)
}

func TestEndpointIsAskedForOnce(t *testing.T) {
	below := &asked{EndpointResolverV2: dynamodb.NewDefaultEndpointResolverV2()}
	remembered := &rememberedEndpoints{EndpointResolverV2: below}
	hosts := map[string]string{"eu-central-1": "", "us-east-1": ""}
	for range 3 {
		for region := range hosts {
			e, err := remembered.ResolveEndpoint(t.Context(), dynamodb.EndpointParameters{Region: &region})
			if err != nil || !strings.Contains(e.URI.Host, region) {
				t.Errorf("%s: %v, %v", region, e.URI, err)
			}
		}
	}
	if below.n != 2 {
		t.Errorf("the SDK was asked %d times, want 2", below.n)
	}
}

func TestRegionIsNeededBeyondThisMachine(t *testing.T) {
	withoutAWS(t)
	for endpoint, want := range map[string]error{"": ErrNoRegion, "http://10.0.0.1:8000": ErrNoRegion, "http://localhost:8000": nil, "http://[::1]:8000": nil} {
		if _, err := New(t.Context(), Options{Endpoint: endpoint}); !errors.Is(err, want) {
			t.Errorf("endpoint %q: %v, want %v", endpoint, err, want)
		}
	}
	if client, err := New(t.Context(), Options{Region: "eu-central-1"}); err != nil || client.Options().Region != "eu-central-1" {
		t.Errorf("with a region: %v", err)
	}
}
