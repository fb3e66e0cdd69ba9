package awsdynamo

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// A LastLook sends nothing after the context has ended, and looks as late as
// possible: when the request is signed, has its connection and its body is
// about to be written. A process that was stopped before may be far beyond a
// deadline by then, without the context's timer having fired yet.
//
// It also hands net/http the body as bytes. The SDK's own reader (smithy-go
// 1.28.9) fails with EOF when net/http looks for more of the body after the
// reply has come, whereupon net/http closes the connection under the rest of
// the reply.
type LastLook struct {
	Client aws.HTTPClient
	Over   func(context.Context) error // why nothing more may be sent, nil if it may; nil: [Ended]
}

// Do implements [aws.HTTPClient].
func (l LastLook) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	over := l.Over
	if over == nil {
		over = Ended
	}
	if err := over(r.Context()); err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(&lookingReader{bytes.NewReader(body), func() error { return over(r.Context()) }})
	return l.Client.Do(r)
}

// Ended returns why ctx has ended, by its deadline as much as by its timer; nil
// if it has not.
func Ended(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// A lookingReader fails if over says so when it is first read.
type lookingReader struct {
	*bytes.Reader
	over func() error
}

func (l *lookingReader) Read(b []byte) (int, error) {
	if int64(l.Len()) == l.Size() {
		if err := l.over(); err != nil {
			return 0, err
		}
	}
	return l.Reader.Read(b)
}

// WriteTo hides the Reader's own, which would not look.
func (l *lookingReader) WriteTo(w io.Writer) (int64, error) {
	if err := l.over(); err != nil {
		return 0, err
	}
	return l.Reader.WriteTo(w)
}
