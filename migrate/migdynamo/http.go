package migdynamo

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// newHTTPClient keeps a connection for each of a pod's concurrent requests and
// drops idle ones before AWS does.
func newHTTPClient() aws.HTTPClient {
	return lastLook{awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost, t.MaxConnsPerHost = 1024, 1024, 0
		t.IdleConnTimeout = 20 * time.Second
	})}
}

// lastLook sends nothing after the context has ended, and looks as late as
// possible: when the request is signed, has its connection and its body is
// about to be written. A process that was stopped before may be far beyond a
// deadline by then, without the context's timer having fired yet.
//
// It also hands net/http the body as bytes. The SDK's own reader (smithy-go
// 1.28.9) fails with EOF when net/http looks for more of the body after the
// reply has come, whereupon net/http closes the connection under the rest of
// the reply.
type lastLook struct{ client aws.HTTPClient }

func (l lastLook) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := over(r.Context()); err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(&lookingReader{bytes.NewReader(body), r.Context()})
	return l.client.Do(r)
}

// A lookingReader fails if the context has ended when it is first read.
type lookingReader struct {
	*bytes.Reader
	ctx context.Context
}

func (l *lookingReader) Read(b []byte) (int, error) {
	if int64(l.Len()) == l.Size() {
		if err := over(l.ctx); err != nil {
			return 0, err
		}
	}
	return l.Reader.Read(b)
}

// WriteTo hides the Reader's own, which would not look.
func (l *lookingReader) WriteTo(w io.Writer) (int64, error) {
	if err := over(l.ctx); err != nil {
		return 0, err
	}
	return l.Reader.WriteTo(w)
}

// caller is the key of the context that a request was made with.
type caller struct{}

// callersOwn returns ctx such that [over] asks it itself in whatever is derived
// from it. A claim's context has a deadline that moves, and knows better than a
// timer whether that has passed.
func callersOwn(ctx context.Context) context.Context { return context.WithValue(ctx, caller{}, ctx) }

// over returns why nothing more may be sent.
func over(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	if own, ok := ctx.Value(caller{}).(context.Context); ok {
		if err := own.Err(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
