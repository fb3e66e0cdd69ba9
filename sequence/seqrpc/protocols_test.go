package seqrpc_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

// A network is a way to reach a server over one version of HTTP.
type network struct {
	name   string
	start  func(*httptest.Server)
	client func(*httptest.Server) *http.Client
}

func httpClient(set func(*http.Protocols)) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	set(tr.Protocols)
	return &http.Client{Transport: tr}
}

var networks = []network{
	{
		"http1", (*httptest.Server).Start,
		func(*httptest.Server) *http.Client {
			return httpClient(func(p *http.Protocols) { p.SetHTTP1(true) })
		},
	},
	{
		"h2c",
		func(s *httptest.Server) {
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetUnencryptedHTTP2(true)
			s.Start()
		},
		func(*httptest.Server) *http.Client {
			return httpClient(func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) })
		},
	},
	{
		"tls",
		func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
		func(s *httptest.Server) *http.Client { return s.Client() },
	},
}

// TestEveryProtocolIsAnswered makes every call in every protocol over every HTTP that the
// protocol can use.
func TestEveryProtocolIsAnswered(t *testing.T) {
	for _, n := range networks {
		for _, p := range []struct {
			name    string
			option  connect.ClientOption
			needsH2 bool
		}{
			{"connect", connect.WithClientOptions(), false},
			{"connect json", connect.WithProtoJSON(), false},
			{"grpc", connect.WithGRPC(), true},
			{"grpc json", connect.WithClientOptions(connect.WithGRPC(), connect.WithProtoJSON()), true},
			{"grpc web", connect.WithGRPCWeb(), false},
		} {
			if p.needsH2 && n.name == "http1" {
				continue // HTTP/1.1 has no trailers that Go's client would ask for
			}
			t.Run(n.name+" "+p.name, func(t *testing.T) {
				svc := &stub{
					record: fullRecord, created: []sequence.CreateResult{{Record: fullRecord}},
					list:  sequence.ListResponse{Records: []sequence.Record{fullRecord}},
					lease: sequence.LeaseResponse{Results: []sequence.LeaseResult{{Name: "a", Runs: []sequence.Run{{First: 1, Step: 1, Count: 5}}, Epoch: 1, LeaseID: "S-1"}}},
				}
				srv := newServer(svc)
				n.start(srv)
				defer srv.Close()
				rpc := sequencev1.NewSequenceServiceClient(n.client(srv), srv.URL, p.option)
				checkEveryCall(t, svc, rpc)
			})
		}
	}
}

func checkEveryCall(t *testing.T, svc *stub, rpc sequencev1.SequenceServiceClient) {
	t.Helper()
	record := seqrpc.EncodeRecord(fullRecord)
	for name, call := range everyCall(t.Context(), rpc) {
		svc.err = nil
		got, err := call()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s, ok := got.(*sequencev1.Sequence); ok {
			if diff := cmp.Diff(record, s, protocmp.Transform()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		svc.err = fullError
		_, err = call()
		checkFailure(t, name, err)
	}
}

func everyCall(ctx context.Context, rpc sequencev1.SequenceServiceClient) map[string]func() (proto.Message, error) {
	return map[string]func() (proto.Message, error){
		"Lease": func() (proto.Message, error) {
			return rpc.Lease(ctx, &sequencev1.LeaseRequest{Items: []*sequencev1.LeaseItem{{Name: "a", Count: 5}}})
		},
		"Return":  func() (proto.Message, error) { return rpc.Return(ctx, &sequencev1.ReturnRequest{LeaseId: "S-1"}) },
		"Create":  func() (proto.Message, error) { return rpc.Create(ctx, &sequencev1.CreateRequest{}) },
		"Alter":   func() (proto.Message, error) { return rpc.Alter(ctx, &sequencev1.AlterRequest{}) },
		"Get":     func() (proto.Message, error) { return rpc.Get(ctx, &sequencev1.GetRequest{Name: "orders"}) },
		"List":    func() (proto.Message, error) { return rpc.List(ctx, &sequencev1.ListRequest{}) },
		"Delete":  func() (proto.Message, error) { return rpc.Delete(ctx, &sequencev1.DeleteRequest{}) },
		"Restart": func() (proto.Message, error) { return rpc.Restart(ctx, &sequencev1.RestartRequest{}) },
	}
}

// checkFailure checks that err is fullError as the wire carries it.
func checkFailure(t *testing.T, name string, err error) {
	t.Helper()
	if connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("%s: status %v (%v)", name, connect.CodeOf(err), err)
		return
	}
	failure := err.(*connect.Error)
	if want := "the store is away (wait)"; failure.Message() != want {
		t.Errorf("%s: message %q, want %q", name, failure.Message(), want)
	}
	if len(failure.Details()) != 1 {
		t.Errorf("%s: %d details", name, len(failure.Details()))
		return
	}
	got, err := failure.Details()[0].Value()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(proto.Message(seqrpc.EncodeError(fullError)), got, protocmp.Transform()); diff != "" {
		t.Errorf("%s: detail (-want +got):\n%s", name, diff)
	}
}

func TestDialTrustsTheCAFileOnly(t *testing.T) {
	srv := newServer(&stub{record: fullRecord})
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	trusting, err := seqrpc.Dial(srv.URL, seqrpc.Options{CAFile: ca})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trusting.Get(t.Context(), "orders"); err != nil {
		t.Errorf("with the CA: %v", err)
	}
	if err = dial(t, srv.URL).Delete(t.Context(), "orders"); sequence.CodeOf(err) != sequence.CodeUnavailable {
		t.Errorf("without the CA: %v, want UNAVAILABLE: nothing was sent", err)
	}
	var unknown *tls.CertificateVerificationError
	if !errors.As(err, &unknown) {
		t.Errorf("without the CA: %v does not say that the certificate is at fault", err)
	}
}
