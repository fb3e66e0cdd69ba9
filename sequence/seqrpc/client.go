package seqrpc

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tallystick/tallystick/internal/rpcwire"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

// A Client stands in for one service that runs on one or several servers. It
// implements [sequence.Leaser] and [sequence.Admin] and is safe for concurrent
// use. Every call has a deadline: its context's, or the one of [Options].
//
// A call that fails with [sequence.ErrUnavailable] at one server is tried at
// the next; the error of the last one comes back.
type Client struct {
	targets   []*target
	preferred atomic.Int64 // index of the target to begin with
	issuers   issuers
	timeout   time.Duration
	http      *http.Client
}

var _ Service = (*Client)(nil)

// Close closes the client's idle connections. The client stays usable.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Lease implements [sequence.Leaser]. Sequences that one server cannot serve
// now are asked of the next.
func (c *Client) Lease(ctx context.Context, req sequence.LeaseRequest) (sequence.LeaseResponse, error) {
	a := newAsking(req)
	err := c.inTurn(ctx, repeatable, func(ctx context.Context, t *target) error { return a.ask(ctx, t, &c.issuers) })
	if err != nil && !a.answered {
		return sequence.LeaseResponse{}, err
	}
	return sequence.LeaseResponse{Results: a.results}, nil
}

// Return implements [sequence.Leaser]. Only the server that issued the lease
// can accept it, so no other is tried.
func (c *Client) Return(ctx context.Context, req sequence.ReturnRequest) error {
	ctx, cancel := rpcwire.Deadline(ctx, c.timeout)
	defer cancel()
	t := c.issuers.of(req.LeaseID)
	if t == nil {
		t = c.targets[c.preferred.Load()]
	}
	return t.attempt(ctx, once, func(ctx context.Context, t *target) error {
		_, err := t.rpc.Return(ctx, encodeReturn(req))
		return err
	})
}

// Create implements [sequence.Admin].
func (c *Client) Create(ctx context.Context, req sequence.CreateRequest) ([]sequence.CreateResult, error) {
	m, err := call(ctx, c, once, encodeCreateRequest(req), sequencev1.SequenceServiceClient.Create)
	return decodeCreateResponse(m), err
}

// Alter implements [sequence.Admin].
func (c *Client) Alter(ctx context.Context, req sequence.AlterRequest) (sequence.Record, error) {
	m, err := call(ctx, c, once, encodeAlter(req), sequencev1.SequenceServiceClient.Alter)
	return decodeRecord(m), err
}

// Get implements [sequence.Admin].
func (c *Client) Get(ctx context.Context, name string) (sequence.Record, error) {
	m, err := call(ctx, c, repeatable, &sequencev1.GetRequest{Name: name}, sequencev1.SequenceServiceClient.Get)
	return decodeRecord(m), err
}

// List implements [sequence.Admin].
func (c *Client) List(ctx context.Context, req sequence.ListRequest) (sequence.ListResponse, error) {
	m, err := call(ctx, c, repeatable, encodeListRequest(req), sequencev1.SequenceServiceClient.List)
	return decodeListResponse(m), err
}

// Delete implements [sequence.Admin].
func (c *Client) Delete(ctx context.Context, name string) error {
	_, err := call(ctx, c, once, &sequencev1.DeleteRequest{Name: name}, sequencev1.SequenceServiceClient.Delete)
	return err
}

// Restart implements [sequence.Admin].
func (c *Client) Restart(ctx context.Context, req sequence.RestartRequest) (sequence.Record, error) {
	m, err := call(ctx, c, once, encodeRestart(req), sequencev1.SequenceServiceClient.Restart)
	return decodeRecord(m), err
}
