package migrrpc

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/internal/rpcwire"
	"github.com/tallystick/tallystick/migrate/migrrpc/migratev1"
)

// maxBody bounds a request, in bytes.
const maxBody = 64 << 10

// Lines of a page of the ledger.
const (
	defaultPage = 100
	maxPage     = 1_000
)

// Handler returns the HTTP handler of svc and the path to mount it at.
// Interceptors come in as opts. Authentication is the business of the handler
// around it: every call needs the scope admin.
func Handler(svc Service, opts ...connect.HandlerOption) (path string, handler http.Handler) {
	opts = append(append(rpcwire.HandlerOptions(),
		connect.WithReadMaxBytes(maxBody),
	), opts...)
	return migratev1.NewMigrationServiceHandler(server{svc}, opts...)
}

// Changes reports whether a procedure changes something.
func Changes(procedure string) bool {
	switch procedure {
	case migratev1.MigrationServiceStartProcedure, migratev1.MigrationServiceStopProcedure,
		migratev1.MigrationServiceVerifyProcedure, migratev1.MigrationServiceReplayProcedure:
		return true
	}
	return false
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

func (s server) Status(ctx context.Context, _ *migratev1.StatusRequest) (*migratev1.StatusResponse, error) {
	r, err := s.svc.Status(ctx)
	return answer(r, err, encodeReport)
}

func (s server) Plan(ctx context.Context, _ *migratev1.PlanRequest) (*migratev1.PlanResponse, error) {
	o, err := s.svc.Plan(ctx)
	return answer(o, err, encodeOutlook)
}

func (s server) Start(ctx context.Context, _ *migratev1.StartRequest) (*migratev1.StartResponse, error) {
	status, err := s.svc.Start(ctx)
	if err != nil {
		return nil, encodeFailure(err)
	}
	return &migratev1.StartResponse{Status: string(status)}, nil
}

func (s server) Stop(ctx context.Context, _ *migratev1.StopRequest) (*migratev1.StopResponse, error) {
	status, err := s.svc.Stop(ctx)
	if err != nil {
		return nil, encodeFailure(err)
	}
	return &migratev1.StopResponse{Status: string(status)}, nil
}

func (s server) Verify(ctx context.Context, m *migratev1.VerifyRequest) (*migratev1.VerifyResponse, error) {
	v, err := s.svc.Verify(ctx, VerifyRequest{ID: m.GetVerificationId(), Mode: m.GetMode(), Only: m.GetOnly(), Repair: m.GetRepair()})
	return answer(v, err, encodeVerification)
}

func (s server) Report(ctx context.Context, m *migratev1.ReportRequest) (*migratev1.ReportResponse, error) {
	from, size, err := pageOf(m)
	if err != nil {
		return nil, encodeFailure(err)
	}
	lines, err := s.svc.Ledger(ctx, from, size+1)
	if err != nil {
		return nil, encodeFailure(err)
	}
	res := &migratev1.ReportResponse{}
	if len(lines) > size {
		res.NextPageToken = strconv.FormatInt(lines[size].Number, 10)
		lines = lines[:size]
	}
	for _, l := range lines {
		res.Lines = append(res.Lines, encodeLine(l))
	}
	return res, nil
}

// pageOf returns which lines are asked for.
func pageOf(m *migratev1.ReportRequest) (from int64, size int, err error) {
	size = int(m.GetPageSize())
	if size == 0 {
		size = defaultPage
	}
	if size > maxPage {
		return 0, 0, &Error{connect.CodeInvalidArgument, "page_size", fmt.Sprintf("%d is out of range", size), "use 1 to 1000"}
	}
	if token := m.GetPageToken(); token != "" {
		if from, err = strconv.ParseInt(token, 10, 64); err != nil || from < 0 {
			return 0, 0, &Error{connect.CodeInvalidArgument, "page_token", "is not one of ours", "use next_page_token of the page before"}
		}
	}
	return from, size, nil
}

func (s server) Replay(ctx context.Context, _ *migratev1.ReplayRequest) (*migratev1.ReplayResponse, error) {
	settled, left, err := s.svc.Replay(ctx)
	if err != nil {
		return nil, encodeFailure(err)
	}
	return &migratev1.ReplayResponse{Settled: int64(settled), Left: int64(left)}, nil
}
