package seqrpc_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

const procedures = "/tallystick.sequence.v1.SequenceService/"

func serveOnce(t testing.TB, h http.Handler, method, body string) (status int, answer string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, procedures+method, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestOversizedBodyIsInvalid(t *testing.T) {
	svc := &stub{}
	srv := serve(t, svc)
	name := func(bytes int) string { return strings.Repeat("x", bytes) }
	for _, tc := range []struct {
		protocol string
		option   connect.ClientOption
		want     connect.Code
	}{
		{"connect", connect.WithClientOptions(), connect.CodeInvalidArgument},
		{"json", connect.WithProtoJSON(), connect.CodeInvalidArgument},
		{"grpc", connect.WithGRPC(), connect.CodeResourceExhausted}, // gRPC's custom
	} {
		client := httpClient(func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) })
		rpc := sequencev1.NewSequenceServiceClient(client, srv.URL, tc.option)
		_, err := rpc.Get(t.Context(), &sequencev1.GetRequest{Name: name(seqrpc.MaxBody + 100)})
		if connect.CodeOf(err) != tc.want {
			t.Errorf("%s: Get of over 1 MiB: %v", tc.protocol, err)
		}
		_, err = rpc.Create(t.Context(), &sequencev1.CreateRequest{Specs: []*sequencev1.Spec{{Name: name(seqrpc.MaxBody + 100)}}})
		if err != nil {
			t.Errorf("%s: Create of over 1 MiB: %v", tc.protocol, err)
		}
		_, err = rpc.Create(t.Context(), &sequencev1.CreateRequest{Specs: []*sequencev1.Spec{{Name: name(seqrpc.MaxCreateBody + 100)}}})
		if connect.CodeOf(err) != tc.want {
			t.Errorf("%s: Create of over 16 MiB: %v", tc.protocol, err)
		}
	}
	_, err := dial(t, srv.URL).Get(t.Context(), name(seqrpc.MaxBody+100))
	if sequence.CodeOf(err) != sequence.CodeInvalid {
		t.Errorf("client: %v", err)
	}
}

// TestCompressedBombIsRefused sends a small body that is large once it is unpacked.
func TestCompressedBombIsRefused(t *testing.T) {
	var small bytes.Buffer
	zip := gzip.NewWriter(&small)
	zip.Write([]byte(`{"name":"`))
	for range 8 {
		zip.Write(make([]byte, 1<<20))
	}
	zip.Close()
	svc := &stub{}
	r, err := http.NewRequest(http.MethodPost, serve(t, svc).URL+procedures+"Get", &small)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", "gzip")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK || svc.called() > 0 {
		t.Errorf("status %s, %d calls", res.Status, svc.called())
	}
}

func TestSmallAnswersAreNotCompressed(t *testing.T) {
	for _, tc := range []struct {
		sequences int
		want      string
	}{{1, ""}, {100, "gzip"}} {
		svc := &stub{list: sequence.ListResponse{Records: slices.Repeat([]sequence.Record{fullRecord}, tc.sequences)}}
		r, err := http.NewRequest(http.MethodPost, serve(t, svc).URL+procedures+"List", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept-Encoding", "gzip")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header.Get("Content-Encoding"); got != tc.want {
			t.Errorf("%d sequences: encoding %q, want %q", tc.sequences, got, tc.want)
		}
	}
}

func TestWriteErrorSpeaksTheProtocolOfTheRequest(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seqrpc.WriteError(w, r, fullError) })
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	client := httpClient(func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) })
	for _, option := range []connect.ClientOption{connect.WithClientOptions(), connect.WithGRPC(), connect.WithGRPCWeb(), connect.WithProtoJSON()} {
		_, err := sequencev1.NewSequenceServiceClient(client, srv.URL, option).Get(t.Context(), &sequencev1.GetRequest{})
		checkFailure(t, "Get", err)
	}
}
