package couponrpc

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"github.com/tallystick/tallystick/coupon"
)

// A passage is how far a call has come on its way to a server and back.
type passage struct {
	sent atomic.Bool // there was a connection to send on: the server may have got it
	cut  atomic.Bool // an answer began and did not arrive whole
}

type passageKey struct{}

// watch returns a context for one call and what will be known of its passage.
func watch(ctx context.Context) (context.Context, *passage) {
	p := new(passage)
	ctx = context.WithValue(ctx, passageKey{}, p)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { p.sent.Store(true) }}), p
}

// A watcher is an HTTP client that notes in the passage of a call whether its
// answer is cut off. The status of such an answer is all that is left of it: it
// does not tell which refusal it was, nor whether it was the server's.
type watcher struct{ *http.Client }

// Do sends a request.
func (w watcher) Do(r *http.Request) (*http.Response, error) {
	resp, err := w.Client.Do(r)
	if p, ok := r.Context().Value(passageKey{}).(*passage); ok && err == nil {
		resp.Body = watchedBody{resp.Body, p}
	}
	return resp, err
}

type watchedBody struct {
	io.ReadCloser
	passage *passage
}

// Read reads some of an answer.
func (b watchedBody) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	if err != nil && !errors.Is(err, io.EOF) {
		b.passage.cut.Store(true)
	}
	return n, err
}

// An effect says whether a call whose outcome is not known may be made again.
type effect bool

const (
	repeatable effect = true  // it reads, or has a business number
	once       effect = false // it would happen twice
)

// refusal returns what a call that failed comes to. url is who was asked.
func (p *passage) refusal(url string, e effect, req any, err error) error {
	failure, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err
	}
	if r := detailed(failure); r != nil {
		return r
	}
	if r := plain(url, failure); r != nil && !p.cut.Load() {
		return r
	}
	if m, ok := req.(proto.Message); ok && failure.Code() == connect.CodeInternal {
		if _, bad := proto.Marshal(m); bad != nil {
			return coupon.ErrInvalid.With("the request cannot be sent: %v", bad)
		}
	}
	return p.silence(url, e, cmp.Or(failure.Message(), failure.Code().String()))
}

// silence returns what a call comes to that got no answer.
func (p *passage) silence(url string, e effect, cause string) *coupon.Refusal {
	switch {
	case !p.sent.Load():
		return coupon.ErrShardUnavailable.With("cannot reach %s: %s", url, cause)
	case e == once:
		r := coupon.ErrShardUnavailable.With("no answer from %s: %s: it may have happened, look before you try again", url, cause)
		r.Retryable = false
		return r
	}
	return coupon.ErrShardUnavailable.With("no answer from %s: %s: try again, with the same number", url, cause)
}

// detailed returns the refusal that a server of coupons has put into a failure,
// nil if there is none.
func detailed(failure *connect.Error) *coupon.Refusal {
	r := &coupon.Refusal{Message: failure.Message()}
	for _, d := range failure.Details() {
		value, err := d.Value()
		if err != nil {
			continue
		}
		switch v := value.(type) {
		case *errdetails.ErrorInfo:
			r.Code, r.Retryable, r.Held = v.GetReason(), v.GetMetadata()["retryable"] == "true", splitIDs(v.GetMetadata()["coupon_ids"])
		case *errdetails.BadRequest:
			if all := v.GetFieldViolations(); len(all) > 0 {
				r.Field = all[0].GetField()
			}
		}
	}
	if r.Code == "" {
		return nil
	}
	return r
}

// plain returns the refusal of an answer without one, which something before the
// calls gave; nil if it does not say that nothing was done.
func plain(url string, failure *connect.Error) *coupon.Refusal {
	wire := connect.IsWireError(failure) // else what was read here may be what is wrong
	switch code := failure.Code(); {
	case code == connect.CodeInvalidArgument && wire:
		return coupon.ErrInvalid.With("%s", failure.Message())
	case code == connect.CodeResourceExhausted && wire:
		return coupon.ErrTooLarge.With("%s", failure.Message())
	case code == connect.CodeUnauthenticated:
		return &coupon.Refusal{Code: CodeUnauthenticated, Message: failure.Message()}
	case code == connect.CodePermissionDenied:
		return &coupon.Refusal{Code: CodePermissionDenied, Message: failure.Message()}
	case code == connect.CodeUnimplemented, code == connect.CodeNotFound:
		return &coupon.Refusal{Code: codeNotFound, Message: url + " does not serve coupons"}
	}
	return nil
}
