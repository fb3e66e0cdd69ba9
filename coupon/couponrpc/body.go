package couponrpc

import (
	"errors"
	"io"
	"net/http"

	"github.com/tallystick/tallystick/coupon"
)

// whole has a request that did not arrive whole answered as that. Half a request
// is no mistake of its caller, who may send it again: nothing was done.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil {
			r.Body = requestBody{r.Body}
		}
		next.ServeHTTP(w, r)
	})
}

type requestBody struct{ io.ReadCloser }

// Read reads some of a request. Any failure is the connection's: limits of size
// are set around it.
func (b requestBody) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	if err != nil && !errors.Is(err, io.EOF) {
		err = Encode(coupon.ErrShardUnavailable.With("the request did not arrive whole: send it again"))
	}
	return n, err
}
