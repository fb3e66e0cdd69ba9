package seqrpc

import (
	"cmp"
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

// Codes that only a server far away answers with.
const (
	CodeUnauthenticated  sequence.Code = "UNAUTHENTICATED"   // no token, or one the server does not know
	CodePermissionDenied sequence.Code = "PERMISSION_DENIED" // the token's scope does not reach
)

// statuses pairs the codes with their gRPC statuses.
var statuses = map[sequence.Code]connect.Code{
	sequence.CodeInvalid:      connect.CodeInvalidArgument,
	sequence.CodeNotFound:     connect.CodeNotFound,
	sequence.CodeExists:       connect.CodeAlreadyExists,
	sequence.CodeExhausted:    connect.CodeResourceExhausted,
	sequence.CodePrecondition: connect.CodeFailedPrecondition,
	sequence.CodeAborted:      connect.CodeAborted,
	sequence.CodeUnavailable:  connect.CodeUnavailable,
	sequence.CodeUnknown:      connect.CodeUnknown,
	sequence.CodeInternal:     connect.CodeInternal,
	CodeUnauthenticated:       connect.CodeUnauthenticated,
	CodePermissionDenied:      connect.CodePermissionDenied,
}

// coded returns err as the Error the wire carries: one that has no code gets
// one.
func coded(err error) *sequence.Error {
	if e, ok := errors.AsType[*sequence.Error](err); ok {
		return e
	}
	if errors.Is(err, sequence.ErrClosed) {
		return &sequence.Error{Code: sequence.CodeUnavailable, Message: "the server is stopping", Remedy: "ask another one"}
	}
	return &sequence.Error{Code: sequence.CodeInternal, Message: err.Error()}
}

// text returns what was wrong, the cause included.
func text(e *sequence.Error) string {
	s := cmp.Or(e.Message, string(e.Code))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// EncodeError returns e as the wire has it, nil for nil.
func EncodeError(e *sequence.Error) *sequencev1.Error {
	if e == nil {
		return nil
	}
	m := &sequencev1.Error{Code: string(e.Code), Field: e.Field, Message: text(e), Remedy: e.Remedy}
	if e.RetryAfter > 0 {
		m.RetryAfter = durationpb.New(e.RetryAfter)
	}
	return m
}

// decodeError is the reverse of EncodeError, but for the cause.
func decodeError(m *sequencev1.Error) *sequence.Error {
	if m == nil {
		return nil
	}
	return &sequence.Error{
		Code: sequence.Code(m.GetCode()), Field: m.GetField(), Message: m.GetMessage(), Remedy: m.GetRemedy(),
		RetryAfter: m.GetRetryAfter().AsDuration(),
	}
}

// encodeFailure returns the error of a whole call: a status with a line for
// people and the coded error as its detail. A call that ran out of time has
// only the status: what that means depends on who asks.
func encodeFailure(err error) *connect.Error {
	if status := statusOfContext(err); status != 0 {
		return connect.NewError(status, errors.New("the time of the call ran out on the server"))
	}
	e := coded(err)
	line := text(e)
	if e.Remedy != "" {
		line += " (" + e.Remedy + ")"
	}
	status, ok := statuses[e.Code]
	if !ok {
		status = connect.CodeUnknown
	}
	failure := connect.NewError(status, errors.New(line))
	if detail, err := connect.NewErrorDetail(EncodeError(e)); err == nil {
		failure.AddDetail(detail)
	}
	return failure
}

func statusOfContext(err error) connect.Code {
	if _, ok := errors.AsType[*sequence.Error](err); ok {
		return 0
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return connect.CodeDeadlineExceeded
	case errors.Is(err, context.Canceled):
		return connect.CodeCanceled
	}
	return 0
}

// detail returns the coded error within a server's failure, if there is one.
func detail(failure *connect.Error) (*sequence.Error, bool) {
	for _, d := range failure.Details() {
		if v, err := d.Value(); err == nil {
			if m, ok := v.(*sequencev1.Error); ok {
				return decodeError(m), true
			}
		}
	}
	return nil, false
}
