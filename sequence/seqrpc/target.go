package seqrpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/tallystick/tallystick/internal/rpcwire"
	"github.com/tallystick/tallystick/sequence"
	"github.com/tallystick/tallystick/sequence/seqrpc/sequencev1"
)

// A target is one server, or what stands before several.
type target struct {
	url string
	rpc sequencev1.SequenceServiceClient
}

// An effect says whether a call that was sent and not answered may be made
// again.
type effect bool

const (
	repeatable effect = true  // a read, or a lease: a lost one is burned
	once       effect = false // it may have happened
)

// call makes one call at the servers in turn.
func call[Req, Res any](ctx context.Context, c *Client, e effect, req *Req,
	rpc func(sequencev1.SequenceServiceClient, context.Context, *Req) (*Res, error),
) (res *Res, err error) {
	err = c.inTurn(ctx, e, func(ctx context.Context, t *target) (err error) {
		res, err = rpc(t.rpc, ctx, req)
		return encodable(req, err)
	})
	return res, err
}

// encodable returns err, or, where it is message that cannot be encoded, that.
func encodable(message any, err error) error {
	if err == nil || connect.CodeOf(err) != connect.CodeInternal {
		return err
	}
	m, ok := message.(proto.Message)
	if !ok {
		return err
	}
	if _, bad := proto.Marshal(m); bad != nil {
		return &sequence.Error{Code: sequence.CodeInvalid, Message: "the request cannot be encoded", Err: bad, Remedy: "send text as UTF-8"}
	}
	return err
}

// inTurn calls try with one target after the other, beginning with the
// preferred one, until one does not fail with [sequence.ErrUnavailable].
func (c *Client) inTurn(ctx context.Context, e effect, try func(context.Context, *target) error) error {
	ctx, cancel := rpcwire.Deadline(ctx, c.timeout)
	defer cancel()
	first := int(c.preferred.Load())
	var err error
	for i := range c.targets {
		at := (first + i) % len(c.targets)
		err = c.attempt(ctx, c.targets[at], i == len(c.targets)-1, e, try)
		if !errors.Is(err, sequence.ErrUnavailable) {
			c.preferred.Store(int64(at))
			return err
		}
		if ctx.Err() != nil {
			return err
		}
	}
	return err
}

// attempt calls try with t, in half of the time when there are others to try
// after it: a server that hangs must leave time for them, and a slow one needs
// time to answer.
func (c *Client) attempt(ctx context.Context, t *target, last bool, e effect, try func(context.Context, *target) error) error {
	if deadline, ok := ctx.Deadline(); ok && !last && e == repeatable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(c.timeout, time.Until(deadline)/2))
		defer cancel()
	}
	return t.attempt(ctx, e, try)
}

// attempt calls try with t and returns its error in the domain's terms.
func (t *target) attempt(ctx context.Context, e effect, try func(context.Context, *target) error) error {
	var sent atomic.Bool // from the moment there was a connection to send on: later hooks may come after the answer
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	err := try(traced, t)
	if err == nil {
		return nil
	}
	failure, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err
	}
	if e, ok := detail(failure); ok {
		return e
	}
	if refusal := t.refusal(failure); refusal != nil {
		return refusal
	}
	return t.silence(ctx, failure, sent.Load(), e)
}

// refusal returns the error of an answer that has no detail, because
// something before the handler gave it; nil if it does not say that nothing
// was done.
func (t *target) refusal(failure *connect.Error) *sequence.Error {
	e := &sequence.Error{Message: t.url + ": " + failure.Message()}
	switch failure.Code() {
	case connect.CodeUnauthenticated:
		e.Code, e.Remedy = CodeUnauthenticated, "give a valid token"
	case connect.CodePermissionDenied:
		e.Code, e.Remedy = CodePermissionDenied, "give a token of the scope that this needs"
	case connect.CodeInvalidArgument, connect.CodeResourceExhausted, connect.CodeOutOfRange:
		e.Code = sequence.CodeInvalid
	case connect.CodeUnimplemented, connect.CodeNotFound:
		e.Code = sequence.CodePrecondition
		e.Message, e.Remedy = t.url+" does not serve sequences", "check the URL"
	default:
		return nil
	}
	return e
}

// silence returns the error of a call that got no answer.
func (t *target) silence(ctx context.Context, failure *connect.Error, sent bool, e effect) error {
	cause := plainCause(ctx, failure)
	switch {
	case !sent:
		return &sequence.Error{Code: sequence.CodeUnavailable, Message: "cannot reach " + t.url, Err: cause,
			Remedy: t.connecting(cause)}
	case e == repeatable:
		return &sequence.Error{Code: sequence.CodeUnavailable, Message: "no answer from " + t.url, Err: cause, Remedy: t.again(cause, "try again")}
	}
	return &sequence.Error{Code: sequence.CodeUnknown, Message: "no answer from " + t.url, Err: cause,
		Remedy: t.again(cause, "it may have happened: look before trying again")}
}

// connecting returns what to do about a server that no connection could be made
// to for the reason cause.
func (t *target) connecting(cause error) string {
	_, rest, _ := strings.Cut(t.url, "://")
	_, noTLS := errors.AsType[tls.RecordHeaderError](cause)
	_, stranger := errors.AsType[x509.UnknownAuthorityError](cause)
	_, misnamed := errors.AsType[x509.HostnameError](cause)
	switch {
	case noTLS, strings.Contains(cause.Error(), "server gave HTTP response to HTTPS client"):
		return "the server does not speak TLS: write http://" + rest
	case stranger:
		return "name the file with the authority's certificate: --tls-ca or TALLYSTICK_TLS_CA, Options.CAFile"
	case misnamed:
		return "use a name or address that is in the certificate"
	}
	return "check that the server runs and the URL is right"
}

// again returns otherwise, or, if the answer may be one of TLS, what to do then:
// it ends a connection in clear text with an alert, which is shorter than a
// frame of HTTP/2. Which error that gives depends on whether the alert or the
// request is first: a call of a connection that never was is also canceled.
func (t *target) again(cause error, otherwise string) string {
	alert := errors.Is(cause, io.ErrUnexpectedEOF) || errors.Is(cause, context.Canceled) ||
		strings.Contains(cause.Error(), "http2: client conn could not be established")
	if rest, ok := strings.CutPrefix(t.url, "http://"); ok && alert {
		return "if the server speaks TLS, write https://" + rest + "; otherwise " + otherwise
	}
	return otherwise
}

// plainCause returns why a call got no answer, without the layers that say
// only that it was one.
func plainCause(ctx context.Context, failure *connect.Error) error {
	switch err := ctx.Err(); {
	case err != nil:
		return err
	case failure.Code() == connect.CodeDeadlineExceeded:
		return context.DeadlineExceeded
	case failure.Code() == connect.CodeCanceled:
		return context.Canceled
	}
	err := failure.Unwrap()
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if connect.IsWireError(failure) {
		return fmt.Errorf("it answered %q", failure.Message())
	}
	return err
}
