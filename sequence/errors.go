package sequence

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// A Code names a class of error. Codes are stable: they travel over the wire
// and a program may branch on them.
type Code string

// The codes. Each names the gRPC status of the same spelling.
const (
	CodeInvalid      Code = "INVALID_ARGUMENT"    // the request can never succeed; Field says which part
	CodeNotFound     Code = "NOT_FOUND"           // no sequence of that name, or it was deleted
	CodeExists       Code = "ALREADY_EXISTS"      // Create of a name that is taken
	CodeExhausted    Code = "RESOURCE_EXHAUSTED"  // no value is left and the sequence does not cycle
	CodePrecondition Code = "FAILED_PRECONDITION" // the state of the sequence, lease or store forbids it
	CodeAborted      Code = "ABORTED"             // a concurrent change won; read again and decide
	CodeUnavailable  Code = "UNAVAILABLE"         // the server or its store cannot answer now; retry after RetryAfter
	CodeUnknown      Code = "UNKNOWN"             // it may have happened; see [ErrUnknownOutcome]
	CodeInternal     Code = "INTERNAL"            // a defect or a damaged store
)

// An Error is every error this package and its stores return for a reason a
// caller can act on. It matches, under errors.Is, the sentinel of its code.
type Error struct {
	Code       Code
	Field      string        // the field of the request at fault, in its wire spelling; "" if none
	Message    string        // what was wrong
	Remedy     string        // what to do; "" if there is nothing to add
	RetryAfter time.Duration // with CodeUnavailable: how long to wait at least; 0 if not known
	Err        error         // the cause, if there is one
}

// Error returns the message, the cause and the remedy in one line.
func (e *Error) Error() string {
	s := "sequence: " + cmp.Or(e.Message, string(e.Code))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Remedy != "" {
		s += " (" + e.Remedy + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the sentinel of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Field == "" && t.Err == nil
}

// The sentinels, to be used with errors.Is.
var (
	// ErrInvalid: the request can never succeed as it stands.
	ErrInvalid = &Error{Code: CodeInvalid, Message: "invalid argument"}
	// ErrNotFound: no sequence of that name exists.
	ErrNotFound = &Error{Code: CodeNotFound, Message: "no such sequence"}
	// ErrExists: a sequence of that name exists already.
	ErrExists = &Error{Code: CodeExists, Message: "sequence exists already"}
	// ErrExhausted: every value up to the bound has been taken and the
	// sequence does not cycle. It stays so until the sequence is altered.
	ErrExhausted = &Error{Code: CodeExhausted, Message: "exhausted"}
	// ErrPrecondition: the state of a lease, sequence or store forbids it.
	ErrPrecondition = &Error{Code: CodePrecondition, Message: "precondition failed"}
	// ErrConflict: the item in the store is not as the write demanded.
	// Nothing was written.
	ErrConflict = &Error{Code: CodeAborted, Message: "changed by somebody else"}
	// ErrUnavailable: the server or store cannot be reached or is too busy.
	// Nothing was done; it is safe to retry.
	ErrUnavailable = &Error{Code: CodeUnavailable, Message: "unavailable"}
	// ErrUnknownOutcome: a write was sent and no answer came, so it may have
	// happened or may happen yet. It is retried only where doing it twice is
	// harmless.
	ErrUnknownOutcome = &Error{Code: CodeUnknown, Message: "outcome unknown"}
	// ErrClosed: the client or service was closed.
	ErrClosed = errors.New("sequence: closed")
)

// CodeOf returns the code of err, CodeInternal if it carries none, and "" for
// nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// invalid returns a CodeInvalid error for a field.
func invalid(field, remedy, format string, args ...any) *Error {
	return &Error{Code: CodeInvalid, Field: field, Message: field + ": " + fmt.Sprintf(format, args...), Remedy: remedy}
}

// notFound returns the CodeNotFound error for name.
func notFound(name string) *Error {
	return &Error{Code: CodeNotFound, Field: "name", Message: fmt.Sprintf("sequence %q does not exist", name),
		Remedy: "`tallystick seq list` shows which there are, `tallystick seq create` makes one"}
}

// exhausted returns the CodeExhausted error for name.
func exhausted(d Definition) *Error {
	bound, at := "max", d.Max
	if d.Descending() {
		bound, at = "min", d.Min
	}
	return &Error{Code: CodeExhausted, Field: "name", Message: fmt.Sprintf("sequence %q has reached its %s of %d", d.Name, bound, at),
		Remedy: "alter its bounds or let it cycle"}
}
