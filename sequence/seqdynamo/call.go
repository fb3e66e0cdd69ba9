package seqdynamo

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/tallystick/tallystick/sequence"
)

const (
	defaultTimeout = 2 * time.Second       // of one request
	readAttempts   = 3                     // of one read
	readDelay      = 20 * time.Millisecond // most before the second attempt at a read, doubled before the third
)

// An operation is a method of the SDK's client.
type operation[In, Out any] func(*dynamodb.Client, context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

// write makes one request, once. An error says whether it may have been done.
func write[In, Out any](ctx context.Context, s *Store, do operation[In, Out], in *In) (*Out, error) {
	return attempt(ctx, s, true, do, in)
}

// read makes a request that changes nothing, and again if that fails for a
// reason that passes.
func read[In, Out any](ctx context.Context, s *Store, do operation[In, Out], in *In) (*Out, error) {
	for n := 1; ; n++ {
		out, err := attempt(ctx, s, false, do, in)
		if err == nil || n == readAttempts || !errors.Is(err, sequence.ErrUnavailable) || !pause(ctx, readDelay<<(n-1)) {
			return out, err
		}
	}
}

// pause waits a random time up to most, and returns false once ctx has ended.
func pause(ctx context.Context, most time.Duration) bool {
	timer := time.NewTimer(rand.N(most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// attempt makes one HTTP request.
func attempt[In, Out any](ctx context.Context, s *Store, writes bool, do operation[In, Out], in *In) (*Out, error) {
	if ctx.Err() != nil {
		return nil, notDone(ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var sent atomic.Bool
	out, err := do(s.client, ctx, in, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{}
		o.RetryMaxAttempts = 0
		o.HTTPClient = observed{o.HTTPClient, &sent}
	})
	if err == nil {
		return out, nil
	}
	return nil, s.translate(err, sent.Load(), writes)
}

// observed notes when a request of ours gets a connection. Before that, it
// cannot have been sent; after it, it may have been. Requests for credentials
// do not pass here.
type observed struct {
	dynamodb.HTTPClient
	sent *atomic.Bool
}

func (o observed) Do(r *http.Request) (*http.Response, error) {
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { o.sent.Store(true) }}
	return o.HTTPClient.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
}
