package seqrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/internal/rpcwire"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

// Limits of a request's body.
const (
	MaxBody       = 1 << 20  // bytes
	MaxCreateBody = 16 << 20 // bytes of a Create
)

// Handler returns the HTTP handler of svc and the path to mount it at.
// Interceptors, for tracing say, come in as opts. Authentication is the
// business of the handler around it; see [LeaseOnly] and [WriteError].
func Handler(svc Service, opts ...connect.HandlerOption) (path string, handler http.Handler) {
	opts = append(append(rpcwire.HandlerOptions(),
		connect.WithConditionalHandlerOptions(func(s connect.Spec) []connect.HandlerOption {
			return []connect.HandlerOption{connect.WithReadMaxBytes(bodyLimit(s.Procedure) + 2*framing)}
		}),
	), opts...)
	path, handler = sequencev1.NewSequenceServiceHandler(server{svc}, opts...)
	return path, plainly(limitBody(handler))
}

// LeaseOnly reports whether the procedure (the path of a request) is one that
// applications need to take values. All others manage sequences.
func LeaseOnly(procedure string) bool {
	return procedure == sequencev1.SequenceServiceLeaseProcedure ||
		procedure == sequencev1.SequenceServiceReturnProcedure
}

// WriteError answers r with err in the protocol r speaks. It is for handlers
// that refuse a request before it reaches [Handler].
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	_ = connect.NewErrorWriter().Write(w, r, encodeFailure(err)) // the client is gone: nothing to do
}

func bodyLimit(procedure string) int {
	if procedure == sequencev1.SequenceServiceCreateProcedure {
		return MaxCreateBody
	}
	return MaxBody
}

// framing is the number of bytes around a gRPC message.
const framing = 5

// limitBody refuses bodies over the limit with a coded error before connect
// does so with RESOURCE_EXHAUSTED, which would look like an exhausted
// sequence. Only gRPC requests that announce their size, and compressed ones,
// still get that.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := int64(bodyLimit(r.URL.Path)) + framing
		r.Body = limitedBody{http.MaxBytesReader(w, r.Body, limit)}
		next.ServeHTTP(w, r)
	})
}

// plainly tells people with curl in one line what is wrong with a request that
// speaks none of the protocols; connect answers those with an empty body.
func plainly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.URL.Path == sequencev1.SequenceServiceGetProcedure || r.URL.Path == sequencev1.SequenceServiceListProcedure
		switch {
		case r.Method == http.MethodGet && reads && r.URL.Query().Has("message"): // connect's own form of a GET
			next.ServeHTTP(w, r)
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, r.Method+" is not served here (use POST, with a JSON object as the body)", http.StatusMethodNotAllowed)
		case !spoken(r.Header.Get("Content-Type")):
			w.Header().Set("Accept-Post", "application/json")
			http.Error(w, `the body's type is not known (add the header "Content-Type: application/json")`, http.StatusUnsupportedMediaType)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// spoken reports whether a protocol of connect's has this content type.
func spoken(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || media == "application/proto" ||
		strings.HasPrefix(media, "application/connect+") || strings.HasPrefix(media, "application/grpc"))
}

type limitedBody struct{ io.ReadCloser }

func (b limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = encodeFailure(&sequence.Error{
			Code:    sequence.CodeInvalid,
			Message: fmt.Sprintf("the request is larger than %d bytes", big.Limit),
			Remedy:  "split it into several",
		})
	}
	return n, err
}

// server translates between the wire and a Service.
type server struct{ svc Service }

// answer returns the encoded result, or err as the wire has it.
func answer[T, M any](result T, err error, encode func(T) *M) (*M, error) {
	if err != nil {
		return nil, encodeFailure(err)
	}
	return encode(result), nil
}

func (s server) Lease(ctx context.Context, m *sequencev1.LeaseRequest) (*sequencev1.LeaseResponse, error) {
	req := decodeLeaseRequest(m)
	res, err := s.svc.Lease(ctx, req)
	return answer(res, err, func(res sequence.LeaseResponse) *sequencev1.LeaseResponse { return encodeLeaseResponse(req, res) })
}

func (s server) Return(ctx context.Context, m *sequencev1.ReturnRequest) (*sequencev1.ReturnResponse, error) {
	if err := s.svc.Return(ctx, decodeReturn(m)); err != nil {
		return nil, encodeFailure(err)
	}
	return &sequencev1.ReturnResponse{}, nil
}

func (s server) Create(ctx context.Context, m *sequencev1.CreateRequest) (*sequencev1.CreateResponse, error) {
	res, err := s.svc.Create(ctx, decodeCreateRequest(m))
	return answer(res, err, encodeCreateResponse)
}

func (s server) Alter(ctx context.Context, m *sequencev1.AlterRequest) (*sequencev1.Sequence, error) {
	res, err := s.svc.Alter(ctx, decodeAlter(m))
	return answer(res, err, EncodeRecord)
}

func (s server) Get(ctx context.Context, m *sequencev1.GetRequest) (*sequencev1.Sequence, error) {
	res, err := s.svc.Get(ctx, m.GetName())
	return answer(res, err, EncodeRecord)
}

func (s server) List(ctx context.Context, m *sequencev1.ListRequest) (*sequencev1.ListResponse, error) {
	res, err := s.svc.List(ctx, decodeListRequest(m))
	return answer(res, err, encodeListResponse)
}

func (s server) Delete(ctx context.Context, m *sequencev1.DeleteRequest) (*sequencev1.DeleteResponse, error) {
	if err := s.svc.Delete(ctx, m.GetName()); err != nil {
		return nil, encodeFailure(err)
	}
	return &sequencev1.DeleteResponse{}, nil
}

func (s server) Restart(ctx context.Context, m *sequencev1.RestartRequest) (*sequencev1.Sequence, error) {
	res, err := s.svc.Restart(ctx, decodeRestart(m))
	return answer(res, err, EncodeRecord)
}
