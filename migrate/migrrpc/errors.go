package migrrpc

import (
	"context"
	"errors"
	"strings"

	"connectrpc.com/connect"

	"github.com/tallystick/tallystick/migrate"
	"github.com/tallystick/tallystick/migrate/migrrpc/migratev1"
)

// An Error is what was wrong, in parts.
type Error struct {
	Code    connect.Code
	Field   string // of the request or the plan
	Message string
	Remedy  string
}

// Error returns it in one line.
func (e *Error) Error() string {
	s := e.Message
	if e.Field != "" && !strings.HasPrefix(s, e.Field) {
		s = e.Field + ": " + s
	}
	if e.Remedy != "" {
		s += " (" + e.Remedy + ")"
	}
	return s
}

// Name returns the code as JSON has it: FAILED_PRECONDITION.
func (e *Error) Name() string { return strings.ToUpper(e.Code.String()) }

// sentinels pairs the domain's errors with their codes.
var sentinels = []struct {
	err  error
	code connect.Code
}{
	{migrate.ErrWrongStatus, connect.CodeFailedPrecondition},
	{migrate.ErrOtherPlan, connect.CodeFailedPrecondition},
	{migrate.ErrStateLost, connect.CodeFailedPrecondition},
	{migrate.ErrTransient, connect.CodeUnavailable},
	{context.DeadlineExceeded, connect.CodeDeadlineExceeded},
	{context.Canceled, connect.CodeCanceled},
}

// Describe returns err in parts, nil for nil. What is not known of migrations
// is INTERNAL.
func Describe(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := Known(err); ok {
		return e
	}
	return &Error{Code: connect.CodeInternal, Message: oneLine(err)}
}

// Known returns err in parts, and false if it is not one of the domain's.
func Known(err error) (*Error, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e, true
	}
	if f, ok := errors.AsType[migrate.Finding](err); ok {
		return &Error{connect.CodeFailedPrecondition, f.Field, f.Message, f.Remedy}, true
	}
	if p, ok := errors.AsType[*migrate.PlanError](err); ok {
		plain := *p
		plain.Remedy = ""
		return &Error{connect.CodeInvalidArgument, p.Field, plain.Error(), p.Remedy}, true
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return &Error{Code: s.code, Message: oneLine(err)}, true
		}
	}
	return nil, false
}

// oneLine returns what err says, without the sentinels' prefix.
func oneLine(err error) string {
	text := strings.ReplaceAll(err.Error(), "migrate: ", "")
	return strings.Join(strings.Fields(text), " ")
}

// encodeError returns err as the wire has it, nil for nil.
func encodeError(err error) *migratev1.Error {
	e := Describe(err)
	if e == nil {
		return nil
	}
	return &migratev1.Error{Code: e.Name(), Field: e.Field, Message: e.Message, Remedy: e.Remedy}
}

// decodeError is the reverse of encodeError.
func decodeError(m *migratev1.Error) error {
	if m == nil {
		return nil
	}
	e := &Error{Code: connect.CodeUnknown, Field: m.GetField(), Message: m.GetMessage(), Remedy: m.GetRemedy()}
	_ = e.Code.UnmarshalText([]byte(strings.ToLower(m.GetCode()))) // of a newer server: unknown
	return e
}

// encodeFailure returns the error of a whole call: a status with a line for
// people and the Error as its detail.
func encodeFailure(err error) *connect.Error {
	e := Describe(err)
	failure := connect.NewError(e.Code, errors.New(e.Error()))
	if detail, err := connect.NewErrorDetail(encodeError(e)); err == nil {
		failure.AddDetail(detail)
	}
	return failure
}

// decodeFailure is the reverse of encodeFailure. url is who was asked.
func decodeFailure(url string, err error) error {
	failure, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err
	}
	for _, d := range failure.Details() {
		if v, err := d.Value(); err == nil {
			if m, ok := v.(*migratev1.Error); ok {
				return decodeError(m)
			}
		}
	}
	switch failure.Code() {
	case connect.CodeUnimplemented, connect.CodeNotFound:
		return &Error{Code: connect.CodeFailedPrecondition, Message: url + " does not serve a migration", Remedy: "check the URL"}
	case connect.CodeUnavailable:
		return &Error{Code: connect.CodeUnavailable, Message: "cannot reach " + url + ": " + failure.Message(), Remedy: "check that the pod runs and the URL is right"}
	}
	return &Error{Code: failure.Code(), Message: url + ": " + failure.Message()}
}
