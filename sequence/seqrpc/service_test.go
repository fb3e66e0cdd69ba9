package seqrpc_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc"
)

// A stub is a service that keeps the last request of each kind and answers
// what it was told to.
type stub struct {
	mu      sync.Mutex
	got     any
	calls   int
	err     error
	lease   sequence.LeaseResponse
	created []sequence.CreateResult
	record  sequence.Record
	list    sequence.ListResponse
	hold    chan struct{} // if not nil, calls wait for it or their context
}

func (s *stub) take(ctx context.Context, req any) error {
	s.mu.Lock()
	s.got = req
	s.calls++
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.err
}

func (s *stub) called() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *stub) Lease(ctx context.Context, req sequence.LeaseRequest) (sequence.LeaseResponse, error) {
	err := s.take(ctx, req)
	return s.lease, err
}

func (s *stub) Return(ctx context.Context, req sequence.ReturnRequest) error { return s.take(ctx, req) }

func (s *stub) Create(ctx context.Context, req sequence.CreateRequest) ([]sequence.CreateResult, error) {
	err := s.take(ctx, req)
	return s.created, err
}

func (s *stub) Alter(ctx context.Context, req sequence.AlterRequest) (sequence.Record, error) {
	err := s.take(ctx, req)
	return s.record, err
}

func (s *stub) Get(ctx context.Context, name string) (sequence.Record, error) {
	err := s.take(ctx, name)
	return s.record, err
}

func (s *stub) List(ctx context.Context, req sequence.ListRequest) (sequence.ListResponse, error) {
	err := s.take(ctx, req)
	return s.list, err
}

func (s *stub) Delete(ctx context.Context, name string) error { return s.take(ctx, name) }

func (s *stub) Restart(ctx context.Context, req sequence.RestartRequest) (sequence.Record, error) {
	err := s.take(ctx, req)
	return s.record, err
}

// serve serves svc in clear text over HTTP/1.1 and HTTP/2.
func serve(t testing.TB, svc seqrpc.Service, opts ...connect.HandlerOption) *httptest.Server {
	t.Helper()
	srv := newServer(svc, opts...)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

func newServer(svc seqrpc.Service, opts ...connect.HandlerOption) *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle(seqrpc.Handler(svc, opts...))
	return httptest.NewUnstartedServer(mux)
}

func dial(t testing.TB, urls string) *seqrpc.Client {
	t.Helper()
	c, err := seqrpc.Dial(urls, seqrpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// deadURL is an address where nobody listens.
func deadURL(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
