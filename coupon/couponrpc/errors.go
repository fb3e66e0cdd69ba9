package couponrpc

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"github.com/tallystick/tallystick/coupon"
)

// domain is what our reasons belong to, in google.rpc.ErrorInfo.
const domain = "tallystick.coupon"

// Codes of what is no refusal of a coupon.
const (
	codeInternal         = "INTERNAL"
	CodeUnauthenticated  = "UNAUTHENTICATED"
	CodePermissionDenied = "PERMISSION_DENIED"
	CodeRateLimited      = "RATE_LIMITED"
	codeNotFound         = "NOT_FOUND" // a path that is none
)

// statuses pairs codes with what HTTP and gRPC call them. Every other code of a
// refusal is 409, failed precondition.
var statuses = map[string]struct {
	http int
	grpc connect.Code
}{
	coupon.ErrInvalid.Code:           {http.StatusBadRequest, connect.CodeInvalidArgument},
	coupon.ErrPageToken.Code:         {http.StatusBadRequest, connect.CodeInvalidArgument},
	CodeUnauthenticated:              {http.StatusUnauthorized, connect.CodeUnauthenticated},
	CodePermissionDenied:             {http.StatusForbidden, connect.CodePermissionDenied},
	coupon.ErrUnavailable.Code:       {http.StatusNotFound, connect.CodeNotFound},
	coupon.ErrCampaignNotFound.Code:  {http.StatusNotFound, connect.CodeNotFound},
	coupon.ErrOperationNotFound.Code: {http.StatusNotFound, connect.CodeNotFound},
	codeNotFound:                     {http.StatusNotFound, connect.CodeUnimplemented},
	coupon.ErrInProgress.Code:        {http.StatusConflict, connect.CodeAborted},
	coupon.ErrTooLarge.Code:          {http.StatusRequestEntityTooLarge, connect.CodeResourceExhausted},
	coupon.ErrMismatch.Code:          {http.StatusUnprocessableEntity, connect.CodeFailedPrecondition},
	CodeRateLimited:                  {http.StatusTooManyRequests, connect.CodeResourceExhausted},
	coupon.ErrShardUnavailable.Code:  {http.StatusServiceUnavailable, connect.CodeUnavailable},
	coupon.ErrShardMoving.Code:       {http.StatusServiceUnavailable, connect.CodeUnavailable},
	coupon.ErrPoolRefilling.Code:     {http.StatusServiceUnavailable, connect.CodeUnavailable},
	codeInternal:                     {http.StatusInternalServerError, connect.CodeInternal},
}

// httpStatus returns the status of a code.
func httpStatus(code string) int {
	if s, ok := statuses[code]; ok {
		return s.http
	}
	return http.StatusConflict
}

func grpcCode(code string) connect.Code {
	if s, ok := statuses[code]; ok {
		return s.grpc
	}
	return connect.CodeFailedPrecondition
}

// fail returns an error of the domain as the wire has it. What is no refusal is
// logged and said to be internal: its text may name what is nobody's business.
func fail(ctx context.Context, log *slog.Logger, err error) error {
	r, ok := errors.AsType[*coupon.Refusal](err)
	switch {
	case ok:
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		r = coupon.ErrShardUnavailable.With("the call took too long: try again")
	default:
		log.ErrorContext(ctx, "coupon call failed", "error", err)
		r = &coupon.Refusal{Code: codeInternal, Message: "an error of the server: its log says more"}
	}
	return Encode(r)
}

// Encode returns a refusal as the wire has it.
func Encode(r *coupon.Refusal) *connect.Error {
	failure := connect.NewError(grpcCode(r.Code), errors.New(r.Message))
	info := &errdetails.ErrorInfo{Reason: r.Code, Domain: domain, Metadata: map[string]string{
		"retryable": strconv.FormatBool(r.Retryable),
	}}
	if len(r.Held) > 0 {
		info.Metadata["coupon_ids"] = joinIDs(r.Held)
	}
	details := []proto.Message{info}
	if r.Field != "" {
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: r.Field, Description: r.Message},
		}})
	}
	for _, d := range details {
		if detail, err := connect.NewErrorDetail(d); err == nil {
			failure.AddDetail(detail)
		}
	}
	return failure
}

func joinIDs(ids []coupon.ID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return strings.Join(texts, ",")
}

// splitIDs is the reverse of joinIDs.
func splitIDs(list string) []coupon.ID {
	var ids []coupon.ID
	for text := range strings.SplitSeq(list, ",") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			ids = append(ids, coupon.ID(n))
		}
	}
	return ids
}

// invalid refuses a field of a request.
func invalid(field, format string, args ...any) error {
	r := coupon.ErrInvalid.With(format, args...)
	r.Field = field
	return r
}
